// Symbols by patterns: no grammar of D is installed.
module shop.store;

import std.stdio : writeln;

enum limit = 10;
enum Kind : int { fruit, bread = 2 }
alias Name = string;

interface Priced
{
    int price(string name);
}

struct Item
{
    string name;
    this(string name) { this.name = name; }
}

/// What sells.
final class Store : Priced
{
    private int[string] prices;

    override int price(string name) const @safe
    {
        if (name.length > limit)
            return helper(name);
        else if (auto found = name in prices)
            return *found;
        foreach (key; prices.byKey) { writeln(key); }
        return 0;
    }

    @property bool isEmpty() const { return prices.length == 0; }
}

private int helper(T)(T x) if (is(T : string)) { return 1; }

template Twice(T) { alias Twice = T; }

union Either { int a; float b; }

auto names(const(char)[] prefix) => prefix;
