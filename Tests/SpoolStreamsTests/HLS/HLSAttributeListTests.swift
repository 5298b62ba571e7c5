import Testing

@testable import SpoolStreams

@Suite struct HLSAttributeListTests {
    private func list(_ text: String) -> HLSAttributeList { HLSAttributeList(Array(text.utf8)[...]) }

    @Test func `Commas and equals signs in quotes are part of a value`() {
        let list = list(#"BANDWIDTH=1280000,CODECS="a,URI=b",RESOLUTION=640x360, URI="x" ,NAME="""#)
        #expect(list.isWellFormed && list.attributes.count == 5)
        #expect(list.string("CODECS") == "a,URI=b" && list.string("URI") == "x" && list.string("NAME") == "")
        #expect(list.integer("BANDWIDTH") == 1_280_000 && list.string("BANDWIDTH") == nil && list.symbol("URI") == nil)
    }

    @Test(arguments: ["a", "A_=1", "A", "A=", "A=\"", "A=\"x\"y", "A=x\"y\"", "=1", ",", "A=1,,B=2", "A =1", "é=1"])
    func `An invalid attribute ends the list`(text: String) {
        #expect(!list("OK=1,\(text)").isWellFormed)
        #expect(list("OK=1,\(text)").integer("OK") == 1)
    }

    @Test("E332: an attribute name in lowercase letters does not end the attribute list")
    func lowercase() {
        #expect(list("a=1,keyformat=\"x\",URI=\"/k\"").string("URI") == "/k")
    }

    @Test("E391: attributes after a syntax error are read; extra white space, and quotes in values, are accepted")
    func tolerant() {
        let spaced = list("BANDWIDTH = 1 , NAME = \"a\" ,URI=x ")
        #expect(spaced.integer("BANDWIDTH") == 1 && spaced.string("NAME") == "a" && spaced.text("URI") == "x")
        let quoted = list("NAME=\"a \"b\" c\",URI=\"u,v\"")
        #expect(quoted.string("NAME") == "a \"b\" c" && quoted.string("URI") == "u,v")
        #expect(list("A_=1,=2,B=x\"y,URI=\"u\"").string("URI") == "u")
        #expect(list("BANDWIDTH=\"7\"").bitRate("BANDWIDTH") == 7)
    }

    @Test func `An empty attribute list is valid`() {
        #expect(list("").isWellFormed && list("  ").isWellFormed && list("A=1,").attributes.count == 1)
    }
}
