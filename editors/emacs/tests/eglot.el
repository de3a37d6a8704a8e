;;; eglot.el --- `flashgrep lsp' in a real Emacs, set up as docs/editors.md says  -*- lexical-binding: t -*-

;;; Commentary:

;; emacs --batch -f package-initialize -l eglot.el, in the project that is the current folder: definition, references,
;; symbols of the workspace, text that is not saved, rename.

;;; Code:

(require 'eglot)
(setq eglot-confirm-server-initiated-edits nil
      make-backup-files nil)
(require 'xref)
(require 'imenu)

(defun places (items)
  "Return where xref's ITEMS are, as path:line:column."
  (sort (mapcar (lambda (item)
                  (let ((marker (xref-location-marker (xref-item-location item))))
                    (with-current-buffer (marker-buffer marker)
                      (save-excursion
                        (goto-char marker)
                        (format "%s:%d:%d" (file-relative-name buffer-file-name default-directory-of-test)
                                (line-number-at-pos) (1+ (current-column)))))))
                items)
        #'string<))

(defun equal-or-fail (found expected)
  "Fail unless FOUND is EXPECTED."
  (unless (equal found expected) (error "found %S, expected %S" found expected)))

;; As docs/editors.md has it.
(add-to-list 'eglot-server-programs '(prog-mode . ("flashgrep" "lsp")))

(defvar default-directory-of-test (file-truename default-directory))

(defun run ()
  "Go through what the document promises."
  (find-file "src/use.py")
  (equal-or-fail major-mode 'python-mode)
  (apply #'eglot (eglot--guess-contact))
  (with-timeout (60 (error "the server did not start"))
    (while (not (eglot-current-server)) (accept-process-output nil 0.05)))
  (goto-char (point-min))
  (search-forward "print(find_p")
  (equal-or-fail (places (xref-backend-definitions 'eglot "find_parcel")) '("src/parcel.py:1:5"))
  (equal-or-fail (places (xref-backend-references 'eglot "find_parcel"))
                 '("src/parcel.py:1:5" "src/use.py:1:20" "src/use.py:4:11"))
  (equal-or-fail (places (xref-backend-apropos 'eglot "find_par")) '("src/parcel.py:1:5"))
  (goto-char (point-min))
  (insert "# é😀 typed, and not saved\ndef typed_only():\n    pass\n\n\ntyped_only()\n")
  (goto-char (point-min))
  (search-forward "\ntyped_")
  (eglot--signal-textDocument/didChange)        ; as Emacs does when it is idle, which it never is here
  (equal-or-fail (places (xref-backend-definitions 'eglot "typed_only")) '("src/use.py:2:5"))
  (search-forward "print(find_p")
  (eglot-rename "look_up_parcel")
  (goto-char (point-min))
  (unless (search-forward "print(look_up_parcel(7))" nil t) (error "nothing was renamed"))
  (with-current-buffer (find-file-noselect (expand-file-name "src/parcel.py" default-directory-of-test))
    (equal-or-fail (car (split-string (buffer-string) "\n")) "def look_up_parcel(number):")
    (set-buffer-modified-p nil))
  (set-buffer-modified-p nil))

(condition-case problem
    (progn (run)
           (princ "ok flashgrep lsp in Emacs: definition, references, symbols, unsaved text, rename\n"))
  (error (princ (format "FAILED %S\n" problem)) (kill-emacs 1)))

;;; eglot.el ends here
