import Foundation
import Testing
import TrunklineAppProtocol

/// docs/reference/schemas against the message table, the encoder, the decoder and docs/reference/protocol.md.
@Suite struct SchemaTests {
  static let reference = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("docs/reference")
  static let schema: JSONSchema = {
    let bytes = (try? Data(contentsOf: reference.appendingPathComponent("schemas/trunkline.v1.json"))) ?? Data()
    return JSONSchema(root: (try? JSON(bytes)) ?? .null)
  }()

  /// A frame, the name of its schema, and whether the decoder reads it.
  struct Sample: CustomTestStringConvertible, Sendable {
    var name: String
    var bytes: [UInt8]
    var isRead: @Sendable ([UInt8]) -> Bool
    var testDescription: String { String(decoding: bytes, as: UTF8.self) }

    init<Message: ProtocolMessage>(_ message: Message, _ side: String) where Message.MessageType: Sendable {
      let type = message.type
      name = "\(side).\(type.rawValue)"
      bytes =
        AppFrame(
          message, id: type.isRequest ? call : nil, re: type.row.kind == .response ? call : nil, seq: type.isNumbered ? 5 : nil,
          ack: 1, call: type.needsCall ? call : nil
        ).encoded()
      isRead = { bytes in
        if case .message? = (try? AppFrame<Message>(decoding: bytes))?.body { true } else { false }
      }
    }
  }
  static let samples =
    MessageTableTests.client.map { Sample($0, "client") } + MessageTableTests.server.map { Sample($0, "server") }

  @Test func `every row of the table has a schema, and every schema a row`() {
    let rows =
      ClientMessageType.allCases.map { "client." + $0.rawValue } + ServerMessageType.allCases.map { "server." + $0.rawValue }
    #expect(Set(rows) == Set(Self.schema.definitions.keys.filter { $0.hasPrefix("client.") || $0.hasPrefix("server.") }))
  }

  @Test func `a schema requires of the envelope what its row says`() {
    func required(_ schema: JSON) -> Set<String> {
      let own = Set(schema.fields["required"]?.elements.compactMap(\.string) ?? [])
      return own.union(schema.fields["$ref"].flatMap(Self.schema.resolve).map(required) ?? [])
    }
    func check<T: ProtocolMessageType>(_ types: T.Type, _ side: String) {
      for type in T.allCases {
        let name = "\(side).\(type.rawValue)"
        var expected: Set<String> = ["t"]
        if type.isRequest { expected.insert("id") }
        if type.row.kind == .response { expected.insert("re") }
        if type.isNumbered { expected.insert("seq") }
        if type.needsCall { expected.insert("call") }
        #expect(required(Self.schema.definitions[name] ?? .null).subtracting(["d"]) == expected, "\(name)")
      }
    }
    check(ClientMessageType.self, "client")
    check(ServerMessageType.self, "server")
  }

  @Test(arguments: samples) func `what the encoder writes is valid, and what the decoder refuses is not`(sample: Sample) throws {
    let schema = try #require(Self.schema.definitions[sample.name])
    let frame = try JSON(sample.bytes)
    #expect(Self.schema.problems(frame, schema) == [])
    for (change, changed) in Self.variants(frame) {
      let problems = Self.schema.problems(changed, schema)
      #expect(try sample.isRead(changed.bytes) == problems.isEmpty, "\(change): \(problems)")
    }
  }

  /// The value with one field left out, or one value replaced by another.
  static func variants(_ value: JSON) -> [(change: String, value: JSON)] {
    func changed(_ child: JSON, _ name: String, _ wrap: (JSON) -> JSON) -> [(change: String, value: JSON)] {
      let others: [JSON] = [.object([:]), .list([]), .text("☎"), .integer(7), .number(0.5)]
      return others.map { ("\(name) = \($0)", wrap($0)) } + variants(child).map { ("\(name).\($0.change)", wrap($0.value)) }
    }
    switch value {
    case .object(let fields):
      return fields.flatMap { key, child in
        [("\(key) left out", .object(fields.filter { $0.key != key }))]
          + changed(child, key) { new in .object(fields.merging([key: new]) { $1 }) }
      }
    case .list(let elements):
      return elements.indices.flatMap { index in
        changed(elements[index], "[\(index)]") { new in
          var list = elements
          list[index] = new
          return .list(list)
        }
      }
    default: return []
    }
  }

  /// The rows of one direction as docs/reference/protocol.md has them.
  private static func lines<T: ProtocolMessageType>(_ types: T.Type, _ direction: String) -> [String] {
    T.allCases.map { type in
      let marks = [type.isNumbered, type.needsCall].map { $0 ? "yes" : "–" }
      return "| `\(type.rawValue)` | \(direction) | \(type.row.kind) | \(marks[0]) | \(marks[1]) |"
    }
  }

  @Test func `the table of messages in docs/reference/protocol.md is the code's`() throws {
    let text = try String(contentsOf: Self.reference.appendingPathComponent("protocol.md"), encoding: .utf8)
    let lines = text.components(separatedBy: "\n")
    let start = try #require(lines.firstIndex(of: "<!-- the rows of Sources/Wire/AppProtocol -->"))
    let written = lines[start...].dropFirst(3).prefix { $0.hasPrefix("| ") }
    let rows = (Self.lines(ClientMessageType.self, "C→S") + Self.lines(ServerMessageType.self, "S→C")).sorted()
    #expect(Array(written) == rows, "write these rows into protocol.md:\n\(rows.joined(separator: "\n"))")
    let others = lines.filter { !rows.contains($0) }.joined(separator: "\n")
    for type in ClientMessageType.allCases.map(\.rawValue) + ServerMessageType.allCases.map(\.rawValue) {
      #expect(others.contains("`\(type)`") || others.contains("`\(type){"), "protocol.md does not describe \(type)")
    }
  }

  @Test func `every frame in docs/reference/protocol.md is valid`() throws {
    let text = try String(contentsOf: Self.reference.appendingPathComponent("protocol.md"), encoding: .utf8)
    let blocks = text.components(separatedBy: "```json frames\n").dropFirst().compactMap {
      $0.components(separatedBy: "```").first
    }
    let frames = blocks.flatMap { $0.split(separator: "\n") }
    #expect(frames.count > 10)
    for frame in frames {
      let json = try JSON(frame.utf8)
      let type = json.fields["t"]?.string ?? ""
      let schemas = ["client." + type, "server." + type].compactMap { Self.schema.definitions[$0] }
      #expect(schemas.contains { Self.schema.problems(json, $0).isEmpty }, "\(frame)")
    }
  }

  @Test func `the schema lists the end reasons and error codes of the code`() {
    func listed(_ name: String) -> Set<String> {
      Set(Self.schema.definitions[name]?.fields["examples"]?.elements.compactMap(\.string) ?? [])
    }
    #expect(listed("endReason") == Set(EndReason.allCases.map(\.rawValue)))
    #expect(listed("errorCode") == Set(ErrorCode.allCases.map(\.rawValue)))
  }

  @Test(
    arguments: [
      (#"{"type":"integer"}"#, "7", "7.5"), (#"{"type":"number"}"#, "7.5", "true"), (#"{"const":"a"}"#, #""a""#, #""b""#),
      (#"{"enum":["a"]}"#, #""a""#, #""b""#), (#"{"required":["a"]}"#, #"{"a":1}"#, #"{"b":1}"#),
      (#"{"properties":{"a":{"type":"string"}}}"#, #"{"a":""}"#, #"{"a":1}"#), (#"{"items":{"minimum":2}}"#, "[2]", "[2,1]"),
      (#"{"maximum":2}"#, "2", "3"), (#"{"minLength":1}"#, #""a""#, #""""#), (#"{"maxLength":1}"#, #""a""#, #""ab""#),
      (#"{"maxItems":1}"#, "[1]", "[1,2]"), (#"{"pattern":"^a$"}"#, #""a""#, #""ba""#),
      (#"{"oneOf":[{"minimum":1},{"maximum":5}]}"#, "0", "3"), (#"{"anyOf":[{"minimum":5},{"maximum":1}]}"#, "0", "3"),
      (##"{"$ref":"#/$defs/bye"}"##, #"{"code":1}"#, #"{"code":""}"#), ("{}", "1", ""), (#"{"description":""}"#, "1", ""),
    ])
  func `the check knows each keyword's valid and invalid value`(rule: String, valid: String, invalid: String) throws {
    let rule = try JSON(rule.utf8)
    #expect(Self.schema.problems(try JSON(valid.utf8), rule).isEmpty)
    if !invalid.isEmpty { #expect(!Self.schema.problems(try JSON(invalid.utf8), rule).isEmpty) }
    #expect(Self.schema.problems(.null, .object(["uniqueItems": .bool(true)])).count == 1, "an unknown keyword is a problem")
  }
}
