#lang racket
(require racket/list)

; A point.
(struct point (x y))
(define origin (point 0 0))
(define (norm p) (sqrt (point-x p)))
(define twice (lambda (f) (f (f 1))))
(define-syntax-rule (swap! a b) (set! a b))
(module+ test (check-equal? (norm origin) 0))
