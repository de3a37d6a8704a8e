# Prints the definitions in the files listed on stdin, by R's own parser, as JSON lines like those of ctags: assigned
# functions, variables of the file, and definitions made by calls of the methods package.
#     Rscript definitions.R      (Debian: r-base-core)
options(keep.source = TRUE)
escape <- function(text) gsub('"', '\\"', gsub("\\", "\\\\", text, fixed = TRUE), fixed = TRUE)
makers <- c("setClass", "setRefClass", "setClassUnion", "setGeneric", "setMethod", "setReplaceMethod")

for (path in readLines(file("stdin"))) {
  data <- tryCatch(getParseData(parse(path, encoding = "UTF-8"), includeText = NA), error = function(failed) NULL)
  if (is.null(data)) {
    if (file.size(path) > 0) cat(sprintf('{"_type": "unread", "path": "%s"}\n', escape(path)))
    next
  }
  tell <- function(line, name, kind) {
    cat(sprintf('{"_type": "tag", "path": "%s", "line": %d, "name": "%s", "kind": "%s"}\n', escape(path), line, escape(name), kind))
  }
  unquoted <- function(text) gsub("^[\"'`]|[\"'`]$", "", text)
  data <- data[, c("line1", "id", "parent", "token", "terminal", "text")]
  parts <- list2env(split(data, data$parent))  # an environment is looked into at once, a list from its beginning
  inside <- function(id) parts[[as.character(id)]]
  single <- function(id) {  # the token that an expression is, if it is one
    one <- inside(id)
    if (!is.null(one) && nrow(one) == 1 && one$terminal) one else NULL
  }
  for (id in data$id[data$token %in% c("expr", "expr_or_assign_or_help", "equal_assign")]) {
    of <- inside(id)
    of <- of[of$token != "COMMENT", ]
    if (nrow(of) == 3 && of$token[2] %in% c("LEFT_ASSIGN", "EQ_ASSIGN")) {
      name <- single(of$id[1])
      value <- inside(of$id[3])
      if (is.null(name) || !name$token %in% c("SYMBOL", "STR_CONST")) next
      if (any(value$token %in% c("FUNCTION", "'\\\\'"))) tell(name$line1, unquoted(name$text), "function")
      else if (data$parent[data$id == id] <= 0 && name$token == "SYMBOL") tell(name$line1, unquoted(name$text), "variable")
    } else if (nrow(of) >= 3 && of$token[1] == "expr" && of$token[2] == "'('" && of$token[3] == "expr") {
      called <- single(of$id[1])
      name <- single(of$id[3])
      if (!is.null(called) && !is.null(name) && called$text %in% makers && name$token == "STR_CONST") tell(name$line1, unquoted(name$text), called$text)
    }
  }
}
