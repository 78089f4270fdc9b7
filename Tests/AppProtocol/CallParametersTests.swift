import Foundation
import Testing
import TrunklineAppProtocol

@Suite struct CallParametersTests {
  @Test(
    arguments: [
      ([:], nil), (["X-A": "b", "User-to-User": "61;encoding=hex"], nil), (["X-A": ""], nil), (["X-A": "é – 日"], nil),
      (["X A": "b"], "not a name"), (["": "b"], "not a name"), (["X:": "b"], "not a name"),
      ([String(repeating: "x", count: 65): "b"], "not a name"),
      (["X-A": "b\r\nVia: c"], "control character"), (["X-A": "b\u{0}"], "control character"),
      (["X-A": "b\u{85}"], "control character"),
      (["X-A": "1", "x-a": "2"], "twice"), (["X-A": String(repeating: "b", count: 1_021)], nil),
      (["X-A": String(repeating: "b", count: 1_022)], "1025 bytes"),
      (Dictionary(uniqueKeysWithValues: (0..<17).map { ("X-\($0)", "b") }), "at most 16"),
    ] as [([String: String], String?)])
  func `names are those of header fields, values are lines, and all of them are small`(values: [String: String], fault: String?)
    throws
  {
    #expect((CallParameters(values) == nil) == (fault != nil))
    let json = try JSONEncoder().encode(values)
    do {
      let read = try JSONDecoder().decode(CallParameters.self, from: json)
      #expect(fault == nil && read.values == values)
      #expect(try JSONDecoder().decode([String: String].self, from: JSONEncoder().encode(read)) == values)
    } catch DecodingError.dataCorrupted(let context) {
      #expect(context.debugDescription.contains(fault ?? "no fault"), "\(context.debugDescription)")
    }
  }

  @Test func `others replace the same names, and together they stay small`() throws {
    let one = try #require(CallParameters(["X-A": "1", "B": "2"]))
    #expect(one.merging(try #require(CallParameters(["x-a": "3"])))?.values == ["x-a": "3", "B": "2"])
    #expect(one.merging(try #require(CallParameters(["C": String(repeating: "x", count: 1_020)]))) == nil)
  }
}

@Suite struct HandleTests {
  @Test(
    arguments: [
      ("+15551230001", .phone), ("1001", .phone), ("+1", .phone), ("anonymous", .generic), ("", .generic), ("+", .generic),
      ("+1555x", .generic), ("*21#", .generic), ("bob", .generic), ("٣", .generic),
    ] as [(String, Handle.Kind)])
  func `a number is of one kind, wherever it is told`(text: String, kind: Handle.Kind) {
    #expect(Handle.kind(ofNumber: text) == kind)
  }
}
