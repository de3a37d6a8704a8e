;; Fibonacci, in WebAssembly's text format.
(module $fibonacci
  (type $binary (func (param i32 i32) (result i32)))
  (import "env" "log" (func $log (param i32)))
  (memory $heap (export "memory") 1)
  (global $calls (mut i32) (i32.const 0))
  (table $callbacks 2 funcref)
  (data $greeting (i32.const 0) "hello")

  (func $add (type $binary) (param $left i32) (param $right i32) (result i32)
    local.get $left
    local.get $right
    i32.add)

  ;; The numbers of Fibonacci, slowly.
  (func $fib (export "fib") (param $n i32) (result i32)
    (local $sum i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.lt_s (local.get $n) (i32.const 2))
      (then (return (local.get $n))))
    (call $add
      (call $fib (i32.sub (local.get $n) (i32.const 1)))
      (call $fib (i32.sub (local.get $n) (i32.const 2)))))

  (elem (i32.const 0) $add $fib)
  (export "add" (func $add))
  (start $main)
  (func $main
    (call $log (call $fib (i32.const 10)))))
