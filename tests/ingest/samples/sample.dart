import 'dart:async';
import 'package:shop/item.dart' as item show Item;
export 'src/basket.dart';
part 'sample.g.dart';

/// What a price is in.
enum Currency { euro, dollar }

typedef Pricer = double Function(String name);

const limit = 10;
final Map<String, int> counts = {};
var total = 0;

abstract class Priced {
  double get price;
  void close();
}

mixin Named on Priced {
  String name = '';
}

/// A shop.
class Shop extends Base with Named implements Priced {
  Shop(this.owner, {this.size = 1});
  Shop.empty() : this('', size: 0);
  factory Shop.of(String owner) => Shop(owner);

  final String owner;
  static const int version = 2;
  int size;

  /// Adds one.
  @override
  Future<void> add(String thing) async {
    await helper(thing);
    this.close();
    final local = Item(thing);
  }

  double get price => 1.0;
  set price(double value) { size = value.toInt(); }
  operator ==(Object other) => true;
}

extension Twice on String {
  String twice() => this + this;
}

extension type Id(int value) { int next() => value + 1; }

String helper(String x) {
  int inner(int y) => y;
  return x.twice();
}

void main() => helper('x');

external bool nativeOpen(int hour);

abstract class Shelf {
  factory Shelf.wide() = WideShelf;
  Item operator [](int at) => items[at];
  void operator []=(int at, Item item) {}
  bool operator ==(Object other);
}
