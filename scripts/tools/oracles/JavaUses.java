// Prints what each name in a folder's Java files refers to, by javac, as JSON lines like those of typescript/uses.cjs:
//
//     java --add-exports jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED JavaUses.java ROOT [MODULE_FOLDER…]
//
// A line with a name that javac cannot resolve, since a library is missing, is reported as unseen.
import com.sun.source.tree.*;
import com.sun.source.util.*;
import com.sun.tools.javac.tree.JCTree;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import javax.lang.model.element.*;
import javax.tools.*;

public class JavaUses {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final Map<CompilationUnitTree, String> TEXTS = new HashMap<>();
    static Path root;
    static Trees trees;

    public static void main(String[] args) throws Exception {
        root = Path.of(args[0]).toAbsolutePath();
        List<Path> folders = args.length == 1 ? List.of(root) : Stream.of(args).skip(1).map(root::resolve).toList();
        List<Path> files = new ArrayList<>();
        for (Path folder : folders)
            try (Stream<Path> walk = Files.walk(folder)) {
                walk.filter(path -> path.toString().endsWith(".java") && !path.endsWith("module-info.java")).forEach(files::add);
            }
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8);
        List<String> options = List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-Xmaxerrs", "1");
        JavacTask task = (JavacTask) compiler.getTask(null, manager, problem -> {}, options, null, manager.getJavaFileObjectsFromPaths(files));
        trees = Trees.instance(task);
        List<CompilationUnitTree> units = new ArrayList<>();
        for (CompilationUnitTree unit : task.parse()) {
            units.add(unit);
            TEXTS.put(unit, unit.getSourceFile().getCharContent(true).toString());
        }
        task.analyze();
        for (CompilationUnitTree unit : units) new Uses(unit).scan(new TreePath(unit), null);
        OUT.flush();
    }

    static String file(CompilationUnitTree unit) {
        return root.relativize(Path.of(unit.getSourceFile().toUri())).toString();
    }

    static long line(CompilationUnitTree unit, int at) {
        return unit.getLineMap().getLineNumber(at);
    }

    /** The offset of a declaration's name: javac has that of a method or a variable, and of a class where its head is. */
    static int nameOf(CompilationUnitTree unit, Tree tree, String name) {
        int at = ((JCTree) tree).pos;
        if (!(tree instanceof ClassTree)) return at;
        String text = TEXTS.get(unit);
        var found = java.util.regex.Pattern.compile("\\b(?:class|interface|enum|record)\\s+(" + java.util.regex.Pattern.quote(name) + ")\\b").matcher(text);
        return found.find(at) ? found.start(1) : at;
    }

    static class Uses extends TreePathScanner<Void, Void> {
        final CompilationUnitTree unit;

        Uses(CompilationUnitTree unit) {
            this.unit = unit;
        }

        void tell(int at, Element meant, boolean isCall) {
            // The type of a lambda's parameter that nobody wrote.
            if (at < 0) return;
            if (meant == null || meant.asType() == null || meant.asType().getKind() == javax.lang.model.type.TypeKind.ERROR) {
                long line = line(unit, at);
                OUT.printf("{\"unseen\": [\"%s\", %d, %d]}%n", file(unit), line, line);
                return;
            }
            if (meant.getKind() == ElementKind.CONSTRUCTOR) meant = meant.getEnclosingElement();
            TreePath path = trees.getPath(meant);
            if (path == null || path.getLeaf() instanceof CompilationUnitTree) return;
            String name = meant.getSimpleName().toString(), container = "";
            Element around = meant.getEnclosingElement();
            for (; around != null && (around.getKind().isClass() || around.getKind().isInterface()); around = around.getEnclosingElement())
                container = around.getSimpleName() + (container.isEmpty() ? "" : "." + container);
            boolean isLocal = around != null && around.getKind() != ElementKind.PACKAGE;
            Set<Modifier> modifiers = meant.getModifiers();
            String kind = switch (meant.getKind()) {
                case METHOD -> "method";
                case CLASS, INTERFACE, ENUM, RECORD, ANNOTATION_TYPE -> "class";
                case ENUM_CONSTANT -> "constant";
                case FIELD -> modifiers.contains(Modifier.STATIC) && modifiers.contains(Modifier.FINAL) ? "constant" : "field";
                default -> "";
            };
            if (isLocal || kind.isEmpty() || name.isEmpty()) return;
            // Overloads count as their first.
            for (Element one : meant.getKind() == ElementKind.METHOD ? meant.getEnclosingElement().getEnclosedElements() : List.<Element>of())
                if (one.getKind() == ElementKind.METHOD && one.getSimpleName().equals(meant.getSimpleName()) && trees.getPath(one) != null) {
                    path = trees.getPath(one);
                    break;
                }
            CompilationUnitTree there = path.getCompilationUnit();
            long line = line(there, nameOf(there, path.getLeaf(), name));
            OUT.printf("{\"use\": [\"%s\", %d], \"target\": [\"%s\", %d], \"name\": \"%s\", \"container\": \"%s\", \"kind\": \"%s\", \"call\": %b}%n",
                file(unit), line(unit, at), file(there), line, name, container, kind, isCall);
        }

        /** Import statements are told apart from uses. */
        @Override
        public Void visitImport(ImportTree node, Void nothing) {
            return null;
        }

        /** A constant of an enumeration is made by a call of its class that nobody wrote. */
        @Override
        public Void visitVariable(VariableTree node, Void nothing) {
            Element own = trees.getElement(getCurrentPath());
            if (own == null || own.getKind() != ElementKind.ENUM_CONSTANT) return super.visitVariable(node, nothing);
            if (node.getInitializer() instanceof NewClassTree made) {
                scan(made.getArguments(), nothing);
                if (made.getClassBody() != null) scan(made.getClassBody().getMembers(), nothing);
            }
            return null;
        }

        boolean isCalled() {
            TreePath above = getCurrentPath().getParentPath();
            return above.getLeaf() instanceof MethodInvocationTree call && call.getMethodSelect() == getCurrentPath().getLeaf();
        }

        @Override
        public Void visitIdentifier(IdentifierTree node, Void nothing) {
            String name = node.getName().toString();
            TreePath made = getCurrentPath().getParentPath();
            if (made.getLeaf() instanceof ParameterizedTypeTree) made = made.getParentPath();
            boolean isMade = made.getLeaf() instanceof NewClassTree one && (one.getIdentifier() == node
                || one.getIdentifier() instanceof ParameterizedTypeTree type && type.getType() == node);
            if (!name.equals("this") && !name.equals("super"))
                tell(((JCTree) node).pos, trees.getElement(getCurrentPath()), isMade || isCalled());
            return super.visitIdentifier(node, nothing);
        }

        @Override
        public Void visitMemberSelect(MemberSelectTree node, Void nothing) {
            Element meant = trees.getElement(getCurrentPath());
            TreePath made = getCurrentPath().getParentPath();
            if (made.getLeaf() instanceof ParameterizedTypeTree) made = made.getParentPath();
            boolean isMade = made.getLeaf() instanceof NewClassTree one && (one.getIdentifier() == node
                || one.getIdentifier() instanceof ParameterizedTypeTree type && type.getType() == node);
            // Its end is that of the name.
            int end = (int) trees.getSourcePositions().getEndPosition(unit, node);
            String name = node.getIdentifier().toString();
            if (!(meant instanceof PackageElement) && !name.equals("class") && !name.equals("*") && !name.equals("this"))
                tell(end - name.length(), meant, isMade || isCalled());
            return super.visitMemberSelect(node, nothing);
        }

        @Override
        public Void visitMemberReference(MemberReferenceTree node, Void nothing) {
            int end = (int) trees.getSourcePositions().getEndPosition(unit, node);
            String name = node.getName().toString();
            if (!name.equals("<init>") && !name.equals("new")) tell(end - name.length(), trees.getElement(getCurrentPath()), false);
            return super.visitMemberReference(node, nothing);
        }
    }
}
