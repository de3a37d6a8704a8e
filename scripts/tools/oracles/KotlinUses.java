// Prints what each name in a folder's Kotlin files refers to, by Kotlin's compiler, as JSON lines like those of typescript/uses.cjs:
//
//     CLASSPATH=JARS java KotlinUses.java ROOT [SOURCE_FOLDER…]
//
// JARS: kotlin-compiler-embeddable with what it needs, and the project's libraries.
// A line with a name that the compiler cannot resolve, since a library is missing, is reported as unseen.
import java.io.File;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import org.jetbrains.kotlin.cli.common.config.ContentRootsKt;
import org.jetbrains.kotlin.cli.common.messages.MessageCollector;
import org.jetbrains.kotlin.cli.jvm.compiler.*;
import org.jetbrains.kotlin.cli.jvm.config.JvmContentRootsKt;
import org.jetbrains.kotlin.com.intellij.openapi.util.Disposer;
import org.jetbrains.kotlin.com.intellij.psi.PsiElement;
import org.jetbrains.kotlin.com.intellij.psi.util.PsiTreeUtil;
import org.jetbrains.kotlin.config.*;
import org.jetbrains.kotlin.descriptors.*;
import org.jetbrains.kotlin.psi.*;
import org.jetbrains.kotlin.resolve.*;
import org.jetbrains.kotlin.types.error.ErrorUtils;

public class KotlinUses {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static Path root;
    static BindingContext context;

    public static void main(String[] args) throws Exception {
        root = Path.of(args[0]).toAbsolutePath();
        List<Path> folders = args.length == 1 ? List.of(root) : Stream.of(args).skip(1).map(root::resolve).toList();
        List<String> files = new ArrayList<>();
        for (Path folder : folders)
            try (Stream<Path> walk = Files.walk(folder)) {
                walk.map(Path::toString).filter(path -> path.endsWith(".kt")).forEach(files::add);
            }
        CompilerConfiguration configuration = new CompilerConfiguration();
        configuration.put(CommonConfigurationKeys.MODULE_NAME, "uses");
        configuration.put(CommonConfigurationKeys.MESSAGE_COLLECTOR_KEY, MessageCollector.Companion.getNONE());
        configuration.put(CommonConfigurationKeys.LANGUAGE_VERSION_SETTINGS, new LanguageVersionSettingsImpl(
            LanguageVersion.KOTLIN_1_9, ApiVersion.KOTLIN_1_9, Map.of(), Map.of(LanguageFeature.MultiPlatformProjects, LanguageFeature.State.ENABLED)));
        configuration.put(JVMConfigurationKeys.JDK_HOME, new File(System.getProperty("java.home")));
        JvmContentRootsKt.configureJdkClasspathRoots(configuration);
        String[] jars = System.getProperty("java.class.path").split(File.pathSeparator);
        JvmContentRootsKt.addJvmClasspathRoots(configuration, Stream.of(jars).map(File::new).toList());
        ContentRootsKt.addKotlinSourceRoots(configuration, files);
        KotlinCoreEnvironment environment = KotlinCoreEnvironment.createForProduction(
            Disposer.newDisposable(), configuration, EnvironmentConfigFiles.JVM_CONFIG_FILES);
        context = TopDownAnalyzerFacadeForJVM.analyzeFilesWithJavaIntegration(
            environment.getProject(), environment.getSourceFiles(), new CliBindingTrace(environment.getProject()), configuration,
            environment::createPackagePartProvider).getBindingContext();
        for (KtFile file : environment.getSourceFiles())
            for (KtSimpleNameExpression name : PsiTreeUtil.findChildrenOfType(file, KtSimpleNameExpression.class))
                tell(file, name);
        OUT.flush();
        System.exit(0);
    }

    static String path(KtFile file) {
        return root.relativize(Path.of(file.getVirtualFilePath())).toString();
    }

    static int line(KtFile file, int at) {
        return 1 + file.getViewProvider().getDocument().getLineNumber(at);
    }

    /** Import statements are told apart from uses, and an operator names nothing. */
    static boolean isName(KtSimpleNameExpression name) {
        boolean isWord = Character.isJavaIdentifierStart(name.getText().charAt(0)) || name.getText().startsWith("`");
        boolean isHead = PsiTreeUtil.getParentOfType(name, KtImportDirective.class, KtPackageDirective.class) != null;
        boolean isLabel = name instanceof KtLabelReferenceExpression || name.getParent() instanceof KtInstanceExpressionWithLabel;
        return isWord && !isHead && !isLabel;
    }

    static boolean isCall(KtSimpleNameExpression name) {
        if (name.getParent() instanceof KtCallExpression call) return call.getCalleeExpression() == name;
        return name instanceof KtOperationReferenceExpression;
    }

    static void tell(KtFile file, KtSimpleNameExpression name) {
        if (!isName(name)) return;
        int line = line(file, name.getTextOffset());
        DeclarationDescriptor meant = context.get(BindingContext.REFERENCE_TARGET, name);
        if (meant == null || ErrorUtils.isError(meant)) {
            // Words such as `in` and `is` have no target.
            if (!(name instanceof KtOperationReferenceExpression))
                OUT.printf("{\"unseen\": [\"%s\", %d, %d]}%n", path(file), line, line);
            return;
        }
        if (meant instanceof ConstructorDescriptor made) meant = made.getConstructedClass();
        // A method of a base is one of each subtype, too.
        if (meant instanceof CallableMemberDescriptor member) meant = DescriptorUtils.unwrapFakeOverride(member).getOriginal();
        boolean isCompanion = meant instanceof ClassDescriptor type && type.isCompanionObject();
        if (isCompanion && !meant.getName().asString().equals(name.getReferencedName())) meant = meant.getContainingDeclaration();
        PsiElement element = DescriptorToSourceUtils.descriptorToDeclaration(meant);
        if (!(element instanceof KtNamedDeclaration named) || named.getNameIdentifier() == null) return;
        // Overloads count as their first, and functions that extend one type are overloads.
        for (PsiElement beside : named.getParent().getChildren())
            if (named instanceof KtNamedFunction function && beside instanceof KtNamedFunction other && isOverload(function, other)) {
                named = other;
                break;
            }
        KtFile there = named.getContainingKtFile();
        String container = "";
        DeclarationDescriptor around = meant.getContainingDeclaration();
        for (; around instanceof ClassDescriptor type; around = around.getContainingDeclaration())
            if (!type.isCompanionObject() || !type.getName().asString().equals("Companion"))
                container = around.getName() + (container.isEmpty() ? "" : "." + container);
        String kind = kindOf(meant);
        if (kind.isEmpty() || !(around instanceof PackageFragmentDescriptor)) return;
        OUT.printf("{\"use\": [\"%s\", %d], \"target\": [\"%s\", %d], \"name\": \"%s\", \"container\": \"%s\", \"kind\": \"%s\", \"call\": %b}%n",
            path(file), line, path(there), line(there, named.getNameIdentifier().getTextOffset()), meant.getName().asString(), container, kind, isCall(name));
    }

    static boolean isOverload(KtNamedFunction function, KtNamedFunction other) {
        return Objects.equals(function.getName(), other.getName()) && receiverOf(function).equals(receiverOf(other));
    }

    static String receiverOf(KtNamedFunction function) {
        return function.getReceiverTypeReference() == null ? "" : function.getReceiverTypeReference().getText().replaceAll("[<?].*", "");
    }

    static String kindOf(DeclarationDescriptor meant) {
        if (meant instanceof TypeAliasDescriptor) return "type";
        if (meant instanceof ClassDescriptor type) return type.getKind() == ClassKind.ENUM_ENTRY ? "constant" : "class";
        if (meant instanceof FunctionDescriptor) return meant.getContainingDeclaration() instanceof ClassDescriptor ? "method" : "function";
        return meant instanceof PropertyDescriptor property && property.isConst() ? "constant" : "";
    }
}
