package com.example.store

import java.util.UUID
import com.example.base.Root as Base

const val LIMIT = 10
typealias Handler = (Int) -> Unit

/** Keeps things. */
abstract class Store<T>(val name: String, size: Int) : Base<T>(size), Named, Closeable {
    private var items: List<T> = listOf()
    override fun read(key: String): T = items.first { it == "k $key ${name.trim()}" }
    abstract fun flush()
    companion object { fun create(): Store<Int> = build() }
    init { check(size) }
    constructor(x: Int) : this("x", x)
}

interface Named { val label: String; fun name(): String }
enum class Color(val rgb: Int) : Named { RED(1), GREEN(2); fun paint() {} }
data class Point(val x: Int, var y: Int) : Shape
sealed class Result { object Ok : Result() }
object Registry : Named { val all = mutableListOf<Int>() }
fun String.shout(): String = uppercase()
fun <T> helper(x: T): T { val local = x; return local }
val lazyValue by lazy { helper(1) }
