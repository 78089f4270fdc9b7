import Testing

@testable import TrunklineSIPDialogs

@Suite struct BoxTests {
  @Test func `a box is a value: what is shared is copied before it is changed`() {
    var first = [1: Box("a"), 2: Box("b")]
    let second = first
    first[1]?.value += "!"
    let held = first[2]
    first[2]?.value = "c"
    #expect(first.mapValues(\.value) == [1: "a!", 2: "c"])
    #expect(second.mapValues(\.value) == [1: "a", 2: "b"] && held?.value == "b")
  }
}
