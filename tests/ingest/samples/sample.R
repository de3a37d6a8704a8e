# The shop.
library(stats)
require("utils")
source("helpers.R")

limit <- 10
total = 0

# Prices a thing.
price.of <- function(name, times = 2) {
  inner <- function(x) x * times
  local_one <- inner(1)
  helper(name)
}
helper = function(x) stats::median(x)
`odd name` <- function() price.of("x")
setClass("Shop", representation(name = "character"))
setGeneric("close", function(x) standardGeneric("close"))
setMethod("close", "Shop", function(x) NULL)
Basket <- R6Class("Basket", public = list(add = function(x) self$add(x), size = 0))
assign("later", 3)
helper(\(x) x)
