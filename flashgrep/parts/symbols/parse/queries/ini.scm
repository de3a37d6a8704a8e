; INI: definitions are sections and the settings in them.
(section (section_name (text) @name)) @module
(setting (setting_name) @name) @property

; references
(comment) @skip
