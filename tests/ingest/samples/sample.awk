# Symbols by patterns: no grammar of AWK is installed.
function price(name, found) {
  return helper(prices[name])
}
# function commented() {
func helper(x) { return x + 1 }
/^total/ { print price($1) }
