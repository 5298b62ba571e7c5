import Testing

@testable import SpoolStreams

@Suite struct URIReferenceTests {
    @Test(arguments: [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
        ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
        ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
        ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"),
        ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g#s/./x"), ("http:g", "http:g"),
    ])
    func `References resolve as listed in RFC 3986 §5.4`(reference: String, expected: String) {
        let base = URIReference("http://a/b/c/d;p?q")
        #expect(URIReference(reference).resolved(against: base).text == expected)
    }

    @Test(arguments: [
        "http://u:p@[::1]:80/a%2F?b?c#d#e", "//h", "?", "#", "?#", "a:b", "1a:b", "/:", "data:,a/../b", "://",
    ])
    func `Joining the parts of a reference yields its text`(text: String) {
        #expect(URIReference(text).text == text)
    }

    @Test(arguments: [
        ("%2e%2E/g", "http://a/b/g"), (".%2e/.%2E", "http://a/"), ("%2e/g", "http://a/b/c/g"), ("%2e", "http://a/b/c/"),
        ("/x/%2e%2e/g", "http://a/g"), ("%2e%2e%2e", "http://a/b/c/%2e%2e%2e"), ("%2f%2e%2e", "http://a/b/c/%2f%2e%2e"),
        ("%2", "http://a/b/c/%2"), ("%2e%2eg", "http://a/b/c/%2e%2eg"),
    ])
    func `Percent-encoded dot segments are dot segments`(reference: String, expected: String) {
        let base = URIReference("http://a/b/c/d;p?q")
        #expect(URIReference(reference).resolved(against: base).text == expected)
    }

    @Test func `Empty path segments count as segments`() {
        #expect(URIReference.removingDotSegments("/a//../b") == "/a/b")
        #expect(URIReference.removingDotSegments("//..") == "/")
        #expect(URIReference("../x").resolved(against: URIReference("http://h/a//b")).text == "http://h/a/x")
    }
}
