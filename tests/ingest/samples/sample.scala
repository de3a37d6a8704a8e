package com.example.store

import scala.collection.mutable.{Map => MMap, Set}
import java.io._

/** Keeps things. */
abstract class Store[T](val name: String) extends Base[T](name) with Named with Closeable {
  val limit: Int = 10
  var count = 0
  type Key = String
  def read(key: Key): T = items.get(s"k $key ${name.trim}")
  def flush(): Unit
  override def toString = helper(name)
}

trait Named { def label: String }
object Store extends Named { def apply(x: Int): Store[Int] = new Store[Int]("x"); val Default = 1 }
case class Point(x: Int, y: Int)
sealed trait Shape
case object Circle extends Shape
enum Color extends Named { case Red, Green }
given ordering: Ordering[Point] = Ordering.by(_.x)
def helper[T](x: T): T = { val local = x; local }
package object util { def top = 1 }
