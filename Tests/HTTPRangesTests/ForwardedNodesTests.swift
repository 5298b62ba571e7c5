import Testing

@testable import HTTPRanges

@Suite("Nodes in Forwarded and X-Forwarded-For")
struct ForwardedNodesTests {
    @Test(
        "The nodes in Forwarded are read in order, without ports and brackets",
        arguments: [
            (["for=192.0.2.43"], ["192.0.2.43"]),
            (["For=\"[2001:db8:cafe::17]:4711\""], ["2001:db8:cafe::17"]),
            (["for=192.0.2.60;proto=http;by=203.0.113.43"], ["192.0.2.60"]),
            (["proto=http; FOR=\"192.0.2.60:80\" ;by=_b"], ["192.0.2.60"]),
            (["for=192.0.2.43, for=198.51.100.17"], ["192.0.2.43", "198.51.100.17"]),
            (["for=192.0.2.43", "for=\"_hid-den.1\",,for=unknown;"], ["192.0.2.43", "_hid-den.1", "unknown"]),
            (["proto=https"], ["unknown"]),
            (["by=\"a,b;c\\\"\";for=192.0.2.1"], ["192.0.2.1"]),
            (
                ["for=192.0.2.1:, for=\"\", for=<x>", "for=\"[2001:db8::1\", for=\"[::1]x\", for=\"a\u{E9}\""],
                ["", "", "", "", "", ""]
            ),
            ([""], []), ([], []),
        ] as [([String], [String])])
    func forwarded(values: [String], nodes: [String]) {
        #expect(ForwardedNodes.inForwarded(values) == nodes)
    }

    @Test(
        "E209: malformed Forwarded fields are rejected, even if an unclosed quoted string hides the next element",
        arguments: [
            "for", "=x", "for=\"192.0.2.1", "for=\"x, for=192.0.2.1", "for=\"x, for=\"[2001:db8::1]\"",
            "for=192.0.2.1 x", "for =192.0.2.1", "for= 192.0.2.1", "for=192.0.2.1;for=192.0.2.2", "for=a b",
            "for=192.0.2.1\"", "for=\"192.0.2.1\"x", "for=\"192.0.2.1\\", "\"for=192.0.2.1\"",
        ])
    func malformed(value: String) {
        #expect(ForwardedNodes.inForwarded([value]) == nil)
        #expect(ForwardedNodes.inForwarded(["for=192.0.2.9", value]) == nil)
    }

    @Test("Addresses in X-Forwarded-For are read with or without ports and brackets")
    func xForwardedFor() {
        #expect(
            ForwardedNodes.inXForwardedFor([" 192.0.2.1,198.51.100.1:8080 ,, 2001:db8::1", "[2001:db8::2]:1, unknown"])
                == ["192.0.2.1", "198.51.100.1", "2001:db8::1", "2001:db8::2", "unknown"])
        #expect(ForwardedNodes.inXForwardedFor([]) == [])
        #expect(ForwardedNodes.inXForwardedFor([" , "]) == [])
        #expect(
            ForwardedNodes.inXForwardedFor([
                "a b, \"192.0.2.1\", [, 192.0.2.1:, [::1]x, " + String(repeating: "1", count: 65)
            ])
                == ["", "", "", "", "", ""])
    }
}
