(ns shop.core
  "The shop."
  (:require [clojure.string :as str]
            [shop.db :refer [put!]])
  (:import (java.util Date)))

(def limit 10)
(defonce state (atom {}))
(def ^:dynamic *owner* nil)

;; Finds all groups.
(defn re-groups
  "Returns groups."
  [text]
  (str/split text #" "))

(defn- helper? [x] (re-groups x))

(defn many
  ([x] (many x 1))
  ([x y] (put! x y)))

(defmacro with-shop [& body] `(do ~@body))

(defprotocol Priced
  (price [this])
  (close! [this why]))

(defrecord Item [name amount]
  Priced
  (price [this] (helper? amount))
  (close! [this why] nil))

(deftype Box [x])

(defmulti area :shape)
(defmethod area :square [s] (* (:side s) 2))

(comment (re-groups "in a comment"))
(let [local-one 1] (->> [1] (map re-groups)))
