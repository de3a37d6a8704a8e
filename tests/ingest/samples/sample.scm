; A point.
(define-record-type point (make-point x) point?)
(define origin (make-point 0))
(define (norm p) (sqrt (point-x p)))
(define twice (lambda (f) (f (f 1))))
(define-syntax swap! (syntax-rules () ((_ a b) (set! a b))))
(defun lisp-like (x) "Doc." (norm x))
(defvar *limit* 10)
