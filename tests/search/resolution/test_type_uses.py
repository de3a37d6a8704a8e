"""Who uses a type: all places of a language where one can stand, where names are told by what stands around them."""

import re
from pathlib import Path

import pytest

from tests.search.resolution.test_local_names import users_of

NAME = re.compile(r"\b[fF]\d+\b")
JAVA = {
    "a/Level.java": "package a;\npublic class Level extends Exception { public static int ONE;"
    "public static int stat() { return 1; } }\n",
    "a/U.java": """
        package a;
        class U {
        Level f1() { return null; }
        void f2(Level l) {}
        void f3(java.util.List<Level> l) {}
        Object f4() { return new Level(); }
        Object f5(Object o) { return (Level) o; }
        boolean f6(Object o) { return o instanceof Level; }
        int f7() { return Level.stat(); }
        int f8() { return Level.ONE; }
        void f9() { try {} catch (Level e) {} }
        Object f10() { return Level.class; }
        Object f11() { java.util.function.Supplier<Object> s = Level::new; return s; }
        void f12() throws Level {}
        void f13() { Level[] x = new Level[2]; }
        void f14(final Level l, int b) {}
        <T extends Level> void f15(T t) {}
        class f16 extends Level {}
        void f17(Level... l) {}
        void f18() { for (Level l : list) {} }
        void f19() { Level l = null; }
        }
    """,
}
CSHARP = {
    "L.cs": "namespace A;\nclass Level { public static int One; public static int Stat() => 1; }\n",
    "U.cs": """
        namespace A;
        class U {
        Level f1() => null;
        void f2(Level l) {}
        void f3(List<Level> l) {}
        object f4() => new Level();
        object f5(object o) => (Level)o;
        bool f6(object o) => o is Level;
        int f7() => Level.Stat();
        object f9(object o) => o as Level;
        object f10() => typeof(Level);
        void f13() { var x = new Level[2]; }
        void f14(ref Level l, int b) {}
        void f15<T>(T t) where T : Level {}
        class f16 : Level {}
        void f18() { foreach (Level l in list) {} }
        void f19() { Level? l = null; }
        object f21() => nameof(Level);
        void f22(Dictionary<string, Level?> l) {}
        object f23() => Get<Level>();
        object f24(object o) => o switch { Level l => l, _ => null };
        }
    """,
}
KOTLIN = {
    "L.kt": "package a\nopen class Level { companion object { fun stat() = 1 } }\n",
    "U.kt": """
        package a
        fun f1(): Level? = null
        fun f2(l: Level) {}
        fun f3(l: List<Level>) {}
        fun f4(): Any = Level()
        fun f5(o: Any) = o as Level
        fun f6(o: Any) = o is Level
        fun f7() = Level.stat()
        fun f10() = Level::class
        fun <T : Level> f15(t: T) {}
        class f16 : Level()
        fun f19() { val l: Level = x }
        fun Level.f20() = 1
        fun f21(f: (Level) -> Unit) {}
        fun f22(vararg l: Level) {}
        class f23(val l: Level, var m: Level? = null)
        fun f24(o: Any) { when (o) { is Level -> 1 } }
    """,
}
SWIFT = {
    "L.swift": "class Level { static func stat() -> Int { 1 } }\n",
    "U.swift": """
        func f1() -> Level? { nil }
        func f2(_ l: Level) {}
        func f3(l: [Level]) {}
        func f4() -> Any { Level() }
        func f5(o: Any) { _ = o as? Level }
        func f6(o: Any) -> Bool { o is Level }
        func f7() { Level.stat() }
        func f10() { Level.self }
        func f15<T: Level>(t: T) {}
        class f16: Level {}
        func f19() { let l: Level = x }
        func f21(f: (Level) -> Void) {}
        struct f23 { var l: Level }
        func f24(for level: Level, with x: Level? = nil) {}
    """,
}
SCALA = {
    "L.scala": "package a\nclass Level\nobject Level { def stat = 1 }\n",
    "U.scala": """
        package a
        object U {
        def f1(): Level = null
        def f2(l: Level) = 1
        def f3(l: List[Level]) = 1
        def f4() = new Level()
        def f5(o: Any) = o.asInstanceOf[Level]
        def f7() = Level.stat
        def f15[T <: Level](t: T) = 1
        class f16 extends Level
        def f19() = { val l: Level = x; l }
        def f21(f: Level => Unit) = 1
        case class f23(l: Level, m: Level = null)
        def f24(o: Any) = o match { case l: Level => 1 }
        def f25(a: Int)(implicit l: Level) = 1
        }
    """,
}
RUST = {
    "src/lib.rs": "pub mod l;\npub mod u;\n",
    "src/l.rs": "pub struct Level;\nimpl Level { pub fn stat() {} }\n",
    "src/u.rs": """
        use crate::l::Level;
        fn f1() -> Level { todo!() }
        fn f2(l: Level) {}
        fn f3(l: Vec<Level>) {}
        fn f4() { let x = Level {}; }
        fn f5(o: &Level) {}
        fn f6(o: &mut Level, x: u8) {}
        fn f7() { Level::stat() }
        fn f15<T: Into<Level>>(t: T) {}
        fn f19() { let l: Level = x; }
        struct f23 { l: Level }
        fn f24(o: Option<Box<Level>>) {}
        fn f25(l: impl Fn(Level)) {}
    """,
}
PHP = {
    "l.php": "<?php\nnamespace A;\nclass Level { const ONE = 1; static function stat() {} }\n",
    "u.php": """
        <?php
        namespace A;
        function f1(): ?Level { }
        function f2(Level $l) {}
        function f4() { return new Level(); }
        function f6($o) { return $o instanceof Level; }
        function f7() { Level::stat(); }
        function f8() { return Level::ONE; }
        function f9() { try {} catch (Level $e) {} }
        function f10() { return Level::class; }
        class f16 extends Level {}
        class f23 { private ?Level $l; }
        function f24(int|Level $x, Level ...$r) {}
        function f25() { return new Level; }
    """,
}
CPP = {
    "l.hpp": "class Level { public: static int stat(); };\n",
    "u.cpp": """
        #include "l.hpp"
        Level f1() { return {}; }
        void f2(Level l) {}
        void f3(std::vector<Level> l) {}
        void* f4() { return new Level(); }
        void f5(const Level& l, int x) {}
        void f6(void* o) { static_cast<Level*>(o); }
        int f7() { return Level::stat(); }
        class f16 : public Level {};
        void f19() { Level l; }
        struct f23 { Level* l; };
        void f24(Level*, int);
        void f25() { Level x{}; }
        void f26() { try {} catch (const Level& e) {} }
    """,
}
RUBY = {
    "l.rb": "class Level\n def self.stat; end\nend\n",
    "u.rb": """
        def f4; Level.new; end
        def f7; Level.stat; end
        def f6(o); o.is_a?(Level); end
        class F16 < Level; end
        def f9; rescue Level => e; end
        def f10(x = Level); end
        def f11; [Level, 1]; end
    """,
}
DART = {
    "l.dart": "class Level { static stat() {} }\n",
    "u.dart": """
        import 'l.dart';
        Level f1() => null;
        void f2(Level l) {}
        void f3(List<Level> l) {}
        f4() => Level();
        f5(o) => o as Level;
        f6(o) => o is Level;
        f7() => Level.stat();
        class f16 extends Level {}
        f19() { Level l; }
        f24({required Level l, Level? m}) {}
    """,
}


@pytest.mark.parametrize(
    "files", [JAVA, CSHARP, KOTLIN, SWIFT, SCALA, RUST, PHP, CPP, RUBY, DART]
)
def test_a_type_is_used_wherever_it_stands(
    tmp_path: Path, files: dict[str, str]
) -> None:
    *_, uses = files.values()
    told = {one.split()[0] for one in users_of(tmp_path, files, "usages of Level")}
    assert set(NAME.findall(uses)) <= told
