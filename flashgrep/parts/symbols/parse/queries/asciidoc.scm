; AsciiDoc: headings, each the scope of its section.
(document_title (line) @name) @heading
(section . (_ (line) @name)) @heading

; references
(listing_block) @skip
