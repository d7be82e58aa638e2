"""The rewriter of CUDA sources: what it changes, what it leaves alone, what it refuses."""

import re

import pytest

from tools.cu2cpp import SourceError, main, rewrite


def rewritten(text):
    """Return the text after rewriting, without the #line in front."""
    first, _, rest = rewrite(text, "k.cu").partition("\n")
    assert first == '#line 1 "k.cu"'
    return rest


def words(text):
    """Return the text with single blanks, none beside signs."""
    return re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(text.split()))


def launch_of(text):
    """Return (kernel's name, shape, arguments) of the one launch in a rewritten text."""
    pattern = (
        r"::needle::emulator::launch\(\{NEEDLE_EMULATOR_TEXT\((?P<name>.*?)\), __FILE__, __LINE__\}"
        r", ::needle::emulator::LaunchShape\((?P<shape>.*)\), \[=\]\(const auto&\.\.\. "
        r"needle_argument\) \{ (?P<call>.*?)\(needle_argument\.\.\.\); \}, \[=\]\(auto "
        r"needle_address\) -> decltype\(needle_address\((?P<address>.*?)\)\) "
        r"\{ return needle_address\((?P=address)\); \}(?:, (?P<arguments>.*))?\)"
    )
    match = re.search(pattern, rewritten(text), re.DOTALL)
    assert match is not None, rewritten(text)
    assert match["name"] == match["call"] == match["address"]
    return match["name"], words(match["shape"]), words(match["arguments"] or "")


# --- launches ---


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("k<<<1, 2>>>();", ("k", "1,2", "")),
        ("k<<<g, b, n * 4, s>>>(a, f(b, c));", ("k", "g,b,n*4,s", "a,f(b,c)")),
        ("k<float><<<1, 2>>>(a);", ("k<float>", "1,2", "a")),
        ("k<A<B<int>>><<<1, 2>>>(a);", ("k<A<B<int>>>", "1,2", "a")),
        ("k<(3 > 2), 4><<<1, 2>>>(a);", ("k<(3 > 2), 4>", "1,2", "a")),
        ("a::b::k<T>  <<<1, 2>>> (a);", ("a::b::k<T>", "1,2", "a")),
        ("::k<<<1, 2>>>(a);", ("::k", "1,2", "a")),
        ("S<int>::template k<T><<<1, 2>>>(a);", ("S<int>::template k<T>", "1,2", "a")),
        ("(*pointer)<<<1, 2>>>(a);", ("(*pointer)", "1,2", "a")),
        ("k<<<f<int, 2>(n), dim3{4, 5}>>>(a);", ("k", "f<int,2>(n),dim3{4,5}", "a")),
        ("k<<<(n >> 2), (n >>> 3)>>>(a);", ("k", "(n>>2),(n>>>3)", "a")),
        ("return ::k<<<1, 2>>>(a);", ("::k", "1,2", "a")),
    ],
)
def test_launch(source, expected):
    assert launch_of(source) == expected


def test_launch_is_an_expression_in_its_place():
    text = rewritten("if (n > 0) k<<<1, 2>>>(a); else CHECK(j<<<3, 4>>>());")
    assert re.search(
        r"if \(n > 0\) ::needle::emulator::launch\(.*, a\); else CHECK\(::needle", text
    )
    assert text.endswith("));")


def test_launch_in_a_macro_keeps_its_continuations():
    source = "#define RUN(K, ...) \\\n  K<<<1, \\\n  2>>>(__VA_ARGS__)\nint after;\n"
    text = rewritten(source)
    assert text.count("\\\n") == 2
    assert text.splitlines()[3] == "int after;"
    assert "NEEDLE_EMULATOR_TEXT(K)" in text


def test_comments_in_a_launch_stay():
    text = rewritten("k<<<1, // blocks\n  2 /* threads */>>>(a, // in\n  b);\nint after;")
    assert "// blocks\n" in text
    assert "/* threads */" in text
    assert text.splitlines()[3] == "int after;"


# --- shared memory ---


def test_shared_variables_become_references():
    text = rewritten("void k() {\n  __shared__ float a[N][N + 1], b;\n}")
    assert "typedef float needle_a [ N ] [ N + 1 ] , needle_b;" in text
    assert 'needle_place_of_a{"a", sizeof(needle_a), alignof(needle_a)}' in text
    assert "needle_a& a = *static_cast<needle_a*>(needle_place_of_a.address());" in text
    assert "needle_b& b = *static_cast<needle_b*>(needle_place_of_b.address());" in text


@pytest.mark.parametrize(
    ("declaration", "typedef"),
    [
        ("__shared__ T t[2];", "typedef T needle_t[2];"),
        ("volatile __shared__ int t;", "typedef volatile int needle_t;"),
        ("static __shared__ const int t;", "typedef const int needle_t;"),
        ("__shared__ float *t[4];", "typedef float*needle_t[4];"),
        (
            "__shared__ std::pair<int, float> t, u;",
            "typedef std::pair<int,float>needle_t,needle_u;",
        ),
        ("__shared__ typename A<B<T>>::type t[3];", "typedef typename A<B<T>>::type needle_t[3];"),
        ("__shared__ unsigned long long t[3];", "typedef unsigned long long needle_t[3];"),
        ("__shared__ __align__(16) char t[3];", "typedef __align__(16)char needle_t[3];"),
        (
            "__shared__ alignas(32) char t[3];",
            "typedef __attribute__((aligned(32)))char needle_t[3];",
        ),
    ],
)
def test_types_of_shared_variables(declaration, typedef):
    assert words(typedef) in words(rewritten(f"void k() {{ {declaration} }}"))


def test_dynamic_shared_memory():
    text = rewritten("void k() { extern __shared__ float s[]; }")
    assert "typedef float needle_s [ ];" in text
    assert "needle_s& s = *static_cast<needle_s*>(::needle::emulator::dynamic_shared());" in text


def test_shared_in_classes_and_nested_scopes():
    text = rewritten("namespace n { struct S { void k() { if (a) { __shared__ int s; } } }; }")
    assert "needle_place_of_s" in text


# --- what stays ---

UNTOUCHED = r"""
#include <cuda_runtime.h>
// k<<<1, 2>>>(a); __shared__ int s;
/* k<<<1, 2>>>(a);
   __shared__ int s; */
#error don't k<<<1, 2>>> this
const char* text = "k<<<1, 2>>>(a) \" __shared__ int s;";
const char* raw = R"x(k<<<1, 2>>>(a) )" __shared__ int s;)x";
char quote = '"', apostrophe = '\'';
int n = 1'000'000 << 3 >> 2, m = a<b<c>>::value;
#if 0
it's not code
#endif
template <class T> __global__ void k(T* a) { a[threadIdx.x] = 1; }
"""


def test_all_else_stays_as_it_is():
    assert rewritten(UNTOUCHED) == UNTOUCHED


def test_line_numbers_are_kept():
    source = """
void k() {
  __shared__ float4
      a[3],
      b;  int line_5;
  extern __shared__
  float s[]; int line_7;
}
void f() {
  ns::
  k
  <<<
  1, 2
  >>>
  (
  a
  ); int line_17;
}
int line_19;
"""
    lines = rewritten(source).splitlines()
    for number, line in enumerate(source.splitlines()):
        for name in re.findall(r"line_\d+", line):
            assert name in lines[number], name


def test_noinline_becomes_an_attribute():
    assert rewritten("__noinline__ int f();") == "__attribute__((noinline)) int f();"
    kept = "__attribute__((__noinline__)) int f();"
    assert rewritten(kept) == kept


# --- errors ---


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("\nk<<<1, 2>>>;", 2, "no `>>>` with the arguments in (...) behind it"),
        ("k<<<1, 2;", 1, "no `>>>`"),
        ("k<<<1, 2>>>(a", 1, "launch's `(` is not closed"),
        ("k<<<>>>(a);", 1, "needs a grid and a block"),
        ("x = <<<1, 2>>>(a);", 1, "`<<<` needs a kernel's name before it"),
        ("f(x)<<<1, 2>>>(a);", 1, "`<<<` needs a kernel's name before it"),
        ("k>  <<<1, 2>>>(a);", 1, "no `<` belongs to the `>`"),
        ("int a;\n\n__shared__ int s;", 3, "outside of a function"),
        ("struct S { __shared__ int s; };", 1, "outside of a function"),
        ("void k() {\n__shared__ int s = 3; }", 2, "cannot be initialised"),
        ("void k() { __shared__ int s[2] = {1, 2}; }", 1, "cannot be initialised"),
        ("void k() { __shared__ int s }", 1, "no `;` ends"),
        ("void k() { __shared__ ; }", 1, "declares no variable"),
        ("void k() { __shared__ std::pair<int s; }", 1, "no `>` belongs to this `<`"),
        ("void k() { __shared__ int s[]; }", 1, "needs a size, or `extern`"),
        ("void k() { extern __shared__ int s[4]; }", 1, "needs an empty size: s[]"),
        ("void k() { int __shared__ s; }", 1, "must begin the declaration"),
        ("void k(__shared__ int* s) {}", 1, "outside of a function"),
        ('\n\nconst char* s = "open;\n', 3, "string is not closed"),
        ("/* a\n*/ /* open", 2, "comment is not closed"),
    ],
)
def test_malformed_sources(source, line, message):
    with pytest.raises(SourceError) as caught:
        rewrite(source, "folder/k.cu")
    assert str(caught.value).startswith(f"folder/k.cu:{line}: ")
    assert message in str(caught.value)


def test_program(tmp_path, capsys):
    source = tmp_path / "k.cu"
    target = tmp_path / "deep" / "k.cc"
    source.write_text("void f() { k<<<1, 2>>>(); }\n")
    assert main([str(source), str(target)]) == 0
    assert target.read_text() == rewrite(source.read_text(), str(source))
    source.write_text("k<<<1, 2\n")
    assert main([str(source), str(target)]) == 1
    assert f"cu2cpp: {source}:1: " in capsys.readouterr().err
    assert main([str(tmp_path / "none.cu"), str(target)]) == 1
    assert "none.cu" in capsys.readouterr().err
