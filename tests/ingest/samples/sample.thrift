// Symbols by patterns: no grammar of Thrift is installed.
namespace py shop
include "base.thrift"

typedef map<string, i32> Prices
const i32 LIMIT = 10
enum Kind { FRUIT = 1, BREAD }
struct Item {
  1: required string name,
  2: optional list<i32> prices = [];
}
exception SoldOut { 1: string why }
service Shop extends base.Service {
  // i32 commented(1: string name)
  i32 price(1: string name) throws (1: SoldOut sold),
  oneway void add(1: Item item)
}
