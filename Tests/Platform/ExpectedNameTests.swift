import Testing
import TrunklinePlatform

@Suite struct ExpectedNameTests {
  @Test(arguments: ["a.example", "*.carrier.example", "a", "A.Example", "_sip.example", "1.example", "a.example."])
  func `a host name, or one behind a wildcard`(text: String) { #expect(ExpectedName(text) != nil) }

  @Test(arguments: [
    "", "*", "*.", "a.*.example", "*.*.example", "s*.example", "*s.example", "a.example*", "*.192.0.2.1", "a..example",
    ".example",
    "*..example", "a example", "a\0.example", "bücher.example", String(repeating: "a.", count: 200) + "example",
  ])
  func `what is neither is refused`(text: String) { #expect(ExpectedName(text) == nil) }

  @Test(arguments: [
    ("a.example", "A.EXAMPLE", true), ("a.example", "b.example", false), ("a.example", "*.example", false),
    ("*.example", "a.example", true), ("*.example", "*.example", true), ("*.example", "example", false),
    ("*.example", "a.b.example", false), ("*.example", "*.b.example", false), ("*.b.example", "*.example", false),
    ("*.example", "a.*.example", false), ("*.example", "a.example.", true),
  ])
  func `a wildcard stands for one label`(expected: String, name: String, isAccepted: Bool) throws {
    #expect(try #require(ExpectedName(expected)).accepts(name) == isAccepted)
  }
}
