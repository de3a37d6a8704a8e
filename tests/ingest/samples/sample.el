;;; sample.el --- A loom  -*- lexical-binding: t; -*-

(require 'cl-lib)

(defgroup loom nil "Weaving." :group 'tools)
(defcustom loom-width 80
  "How wide the cloth is."
  :type 'integer)
(defconst loom-max 120)
(defvar loom--threads nil)
(defvar-local loom--buffer nil)
(defface loom-face '((t :inherit bold)) "The face.")

;; Weave some cloth.
(defun loom-weave (yarn &optional count)
  "Weave YARN, COUNT times."
  (interactive "sYarn: ")
  (let ((done 0))
    (while (< done (or count 1))
      (loom--shed yarn)
      (setq done (1+ done)))))

(defsubst loom--shed (yarn) (push yarn loom--threads))
(cl-defun loom-spin (fleece &key fast) (ignore fleece fast))
(cl-defstruct (spindle (:constructor spindle-make)) weight)
(cl-defstruct distaff wool)
(cl-defgeneric loom-size (thing))
(cl-defmethod loom-size ((thing spindle)) (spindle-weight thing))
(defmacro loom-with (thread &rest body) `(let ((loom--threads (list ,thread))) ,@body))
(defalias 'loom-knit #'loom-weave)
(define-minor-mode loom-mode "Weave while typing." :lighter " Loom")
(define-derived-mode cloth-mode fundamental-mode "Cloth")
(ert-deftest loom-test-weave () (should (loom-weave "x")))

(provide 'sample)

(define-advice shop-open (:around (open) twice) (funcall open))
(transient-define-prefix shop-menu () "What can be bought.")
(defvar-keymap shop-mode-map "o" #'shop-open)
(define-obsolete-variable-alias 'shop-old-limit 'shop-limit "2.0")
(define-error 'shop-closed "The shop is closed")
