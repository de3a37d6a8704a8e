<html><?php
namespace App\Store;

use App\Base\Root;
use App\Util\{Text, Json as J};
use function App\helper;

const LIMIT = 10;
define('OTHER', 2);

/** Keeps things. */
abstract class Store extends Root implements \Countable, Named
{
    use Loggable, Cached;

    public const VERSION = '1.0';
    private static ?int $count = 0;

    public function __construct(private string $name, array $x = []) { parent::__construct(); }

    /** Reads one. */
    public function read(string $key): mixed { return $this->items->get("k $key {$this->name()}"); }

    abstract protected function flush(): void;

    public static function create(): static { return new Store(helper(1)); }
}

interface Named extends Base, Other { function name(): string; }
trait Loggable { function log($m) { Store::create(); echo $m; } }
enum Suit: string implements Named { case Hearts = 'H'; case Spades = 'S'; public function name(): string { return ''; } }

function helper(int $x): int { $local = fn($y) => $y; return strlen($x); }
?></html>
