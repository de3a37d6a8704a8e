# Symbols by patterns: no grammar of Tcl is installed.
package require Tcl 8.6
namespace eval ::shop {
    variable limit 10
    namespace export price
}
# proc commented {} {}
proc ::shop::price {name} {
    return [helper-all $name]
}
proc helper-all {x} { return [string length $x] }
oo::class create shop::Store {
    constructor {name} {}
    method add {name amount} {
        my changed? $name
    }
    private method changed? {name} {}
}
snit::type Item {
    typemethod create {name} {}
}
