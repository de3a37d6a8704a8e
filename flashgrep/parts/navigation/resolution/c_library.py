"""Names that the library of C or of POSIX has, and whether a definition of one only stands in for it elsewhere."""

import re
from typing import Final

from flashgrep.parts.navigation.resolution.symbol_graph import Definition

_NAMES: Final = frozenset(re.findall(r"\w+", """
    E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBUSY ECANCELED ECHILD ECONNABORTED
    ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EEXIST EFAULT EFBIG EHOSTUNREACH EILSEQ EINPROGRESS EINTR EINVAL
    EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE ENAMETOOLONG ENETDOWN ENETRESET ENETUNREACH ENFILE ENOBUFS ENODEV
    ENOENT ENOEXEC ENOLCK ENOMEM ENOPROTOOPT ENOSPC ENOSYS ENOTCONN ENOTDIR ENOTEMPTY ENOTSOCK ENOTSUP ENOTTY ENXIO
    EOPNOTSUPP EOVERFLOW EPERM EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ETIMEDOUT ETXTBSY
    EWOULDBLOCK EXDEV errno

    BUFSIZ CHAR_BIT CHAR_MAX CHAR_MIN CLOCKS_PER_SEC DBL_DIG DBL_EPSILON DBL_MANT_DIG DBL_MAX DBL_MAX_10_EXP
    DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP DBL_MIN_EXP EOF EXIT_FAILURE EXIT_SUCCESS FILENAME_MAX FLT_DIG FLT_EPSILON
    FLT_MANT_DIG FLT_MAX FLT_MIN FLT_RADIX HOST_NAME_MAX HUGE_VAL INFINITY INT16_MAX INT16_MIN INT32_MAX INT32_MIN
    INT64_MAX INT64_MIN INT8_MAX INT8_MIN INT_MAX INT_MIN IOV_MAX LLONG_MAX LLONG_MIN LONG_MAX LONG_MIN MAXPATHLEN
    M_E M_PI M_PI_2 NAME_MAX NAN NULL OPEN_MAX PATH_MAX PIPE_BUF PRId64 PRIu64 PRIx64 PTRDIFF_MAX RAND_MAX SCHAR_MAX
    SCHAR_MIN SHRT_MAX SHRT_MIN SIZE_MAX SSIZE_MAX UCHAR_MAX UINT16_MAX UINT32_MAX UINT64_MAX UINT8_MAX UINT_MAX
    ULLONG_MAX ULONG_MAX USHRT_MAX assert bool false offsetof true va_arg va_copy va_end va_start

    AF_INET AF_INET6 AF_UNIX AF_UNSPEC CLOCK_MONOTONIC CLOCK_REALTIME FD_CLOEXEC F_GETFD F_GETFL F_OK F_SETFD F_SETFL
    INADDR_ANY INADDR_LOOPBACK INADDR_NONE INET6_ADDRSTRLEN INET_ADDRSTRLEN IPPROTO_IPV6 IPPROTO_TCP IPPROTO_UDP
    IPV6_V6ONLY LOCK_EX LOCK_NB LOCK_SH LOCK_UN MAP_ANON MAP_ANONYMOUS MAP_FAILED MAP_PRIVATE MAP_SHARED MSG_DONTWAIT
    MSG_NOSIGNAL MSG_PEEK O_APPEND O_CLOEXEC O_CREAT O_DIRECTORY O_EXCL O_NOCTTY O_NOFOLLOW O_NONBLOCK O_RDONLY O_RDWR
    O_SYNC O_TRUNC O_WRONLY POLLERR POLLHUP POLLIN POLLOUT PROT_EXEC PROT_NONE PROT_READ PROT_WRITE R_OK SEEK_CUR
    SEEK_END SEEK_SET SHUT_RD SHUT_RDWR SHUT_WR SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT
    SIGKILL SIGPIPE SIGQUIT SIGSEGV SIGSTOP SIGTERM SIGTRAP SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH SIG_DFL SIG_ERR SIG_IGN
    SOCK_CLOEXEC SOCK_DGRAM SOCK_NONBLOCK SOCK_STREAM SOL_SOCKET SOMAXCONN SO_ERROR SO_KEEPALIVE SO_RCVBUF
    SO_REUSEADDR SO_REUSEPORT SO_SNDBUF STDERR_FILENO STDIN_FILENO STDOUT_FILENO S_IFDIR S_IFLNK S_IFMT S_IFREG
    S_IRGRP S_IROTH S_IRUSR S_IRWXU S_ISBLK S_ISCHR S_ISDIR S_ISFIFO S_ISLNK S_ISREG S_ISSOCK S_IWGRP S_IWOTH S_IWUSR
    S_IXGRP S_IXOTH S_IXUSR TCP_NODELAY WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG W_OK X_OK

    abort abs accept access acos alarm asctime asin atan atan2 atexit atof atoi atol atoll basename bind bsearch calloc
    ceil chdir chmod chown clearerr clock clock_gettime close closedir connect cos cosh ctime difftime dirname div dup
    dup2 execl execlp execv execve execvp exit exp fabs fclose fcntl fdopen feof ferror fflush fgetc fgets fileno floor
    flock fmod fopen fork fprintf fputc fputs fread free freopen frexp fscanf fseek fseeko fstat fsync ftell ftello
    ftruncate fwrite getaddrinfo getc getchar getcwd getegid getenv geteuid getgid gethostbyname gethostname getline
    getopt getopt_long getpagesize getpeername getpid getppid getpwnam getpwuid getrlimit getrusage getsockname
    getsockopt gettimeofday getuid gmtime gmtime_r htonl htons inet_aton inet_ntoa inet_ntop inet_pton ioctl isalnum
    isalpha isatty isblank iscntrl isdigit isgraph isinf islower isnan isprint ispunct isspace isupper isxdigit kill
    labs ldexp link listen localeconv localtime localtime_r log log10 log2 longjmp lseek lstat malloc mbstowcs mbtowc
    memchr memcmp memcpy memmove memset mkdir mkfifo mkstemp mktime mmap modf munmap nanosleep ntohl ntohs open opendir
    pause pclose perror pipe poll popen pow pread printf pthread_cond_broadcast pthread_cond_destroy pthread_cond_init
    pthread_cond_signal pthread_cond_wait pthread_create pthread_detach pthread_exit pthread_getspecific pthread_join
    pthread_key_create pthread_key_delete pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock
    pthread_mutex_unlock pthread_once pthread_self pthread_setspecific putc putchar putenv puts pwrite qsort raise rand
    rand_r random read readdir readlink readv realloc realpath recv recvfrom recvmsg remove rename rewind rmdir round
    scanf select send sendmsg sendto setenv setjmp setlocale setrlimit setsid setsockopt setuid setvbuf shutdown
    sigaction sigaddset sigemptyset signal sigprocmask sin sinh sleep snprintf socket socketpair sprintf sqrt srand
    srandom sscanf stat stderr stdin stdout strcasecmp strcasestr strcat strchr strcmp strcoll strcpy strcspn strdup
    strerror strerror_r strftime strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strptime strrchr
    strsep strsignal strspn strstr strtod strtof strtok strtok_r strtol strtoll strtoul strtoull strxfrm symlink
    sysconf system tan tanh tcgetattr tcsetattr time tmpfile tolower toupper trunc truncate umask uname ungetc unlink
    unsetenv usleep utimes vfprintf vprintf vsnprintf vsprintf wait waitpid wcslen write writev

    FILE int16_t int32_t int64_t int8_t intptr_t mode_t off_t pid_t pthread_cond_t pthread_key_t pthread_mutex_t
    pthread_once_t pthread_t ptrdiff_t size_t socklen_t ssize_t timespec timeval time_t uid_t uint16_t uint32_t
    uint64_t uint8_t uintptr_t va_list wchar_t
    """))  # fmt: skip
_CONDITIONS: Final = re.compile(rb"(?m)^[ \t]*#[ \t]*(if(?:n?def)?|endif)\b[^\n]*")
_MOST_BETWEEN: Final = 100
"""Most bytes of blanks between the two lines of a header's guard."""
_GUARD: Final = re.compile(rb"[ \t]*#[ \t]*ifndef[ \t]+(\w+)")


def stands_in(definition: Definition) -> bool:
    """Whether a definition has the name of one of the library, and is for systems that lack it: within ``#if``."""
    if definition.language not in {"c", "cpp"} or definition.name not in _NAMES:
        return False
    symbols = definition.symbols
    depth = 0
    for condition in _CONDITIONS.finditer(symbols.data, 0, definition.key[1]):
        if condition[1] == b"endif":
            depth -= 1
        elif not _is_guard(symbols.data, condition.start(), condition.end()):
            depth += 1
    return depth > 0


def _is_guard(text: bytes, start: int, end: int) -> bool:
    """Whether a condition is the one around a whole header, which defines what it asks for."""
    guard = _GUARD.match(text, start)
    if guard is None or _CONDITIONS.search(text, 0, start):
        return False
    following = text[end : end + len(guard[0]) + _MOST_BETWEEN].split(maxsplit=3)
    return following[:2] == [b"#define", guard[1]]
