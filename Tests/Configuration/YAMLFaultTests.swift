import Testing

@testable import Configuration

@Suite struct YAMLFaultTests {
  private static let tab = "a tab in the indentation: write spaces"
  private static let indentation =
    "wrong indentation: the keys of one section, and the dashes of one list, must be exactly below each other"
  private static let address = "an IPv6 address goes in quotes: \"[::1]:5060\", \"2001:db8::1\""

  @Test(arguments: [
    ("listen:\n\tapp: 127.0.0.1:1", "2:1", tab), ("listen:\n  app: 127.0.0.1:1\n\tadmin: 127.0.0.1:2", "3:1", tab),
    ("listen:\r\n  app: 127.0.0.1:1\r\n\tadmin: 127.0.0.1:2", "3:1", tab),
    ("users:\n  -\tid: a\n\tname: b", "2:4", tab),
    ("listen:\n  app: 127.0.0.1:1\n admin: 127.0.0.1:2", "3:2", indentation),
    ("listen:\n  app: 127.0.0.1:1\n    admin: 127.0.0.1:2", "3:10", indentation),
    ("users:\n  - id: a\n   name: b", "3:4", indentation), ("users:\n  - id: a\n  name: b", "3:3", indentation),
    ("users:\n  - id: a\n      name: b", "3:11", indentation),
    ("trunks:\n  - uri: sip: x", "2:13", "a second \": \" on one line: put the value in quotes"),
    ("listen:\n  sip:\n    udp: [::1]:5060", "3:11", address), ("listen: { sip: { udp: [::1]:5060 } }", "1:24", address),
    ("listen: { sip: { udp: [::1] } }", "1:24", address), ("listen:\n  sip:\n    udp:\n      - [::1]:5060", "4:10", address),
    ("media: { addresses: [ ::1 ] }", "1:23", address), ("media: { addresses: 2001:db8:: }", "1:30", address),
    ("media:\n  addresses: 2001:db8::", "2:23", address), ("trunks: [ { uri: sip:[::1]:5060 } ]", "1:21", address),
    ("users: [ a", "2:1", "not YAML: did not find expected ',' or ']'"),
  ])
  func `the commonest faults of YAML are said in our words`(text: String, position: String, message: String) throws {
    #expect(try TemporaryFolder().problems(text) == ["gateway.yaml:\(position): \(message)"])
  }

  private func drawn(_ text: String) throws -> String {
    do {
      _ = try TemporaryFolder().parse(text)
      return ""
    } catch let problems as ConfigurationProblems {
      return problems.drawn
    }
  }

  @Test func `a problem is drawn with its line and a caret`() throws {
    #expect(
      try drawn("auth:\n  jwt: key").hasPrefix(
        "gateway.yaml:2:8: auth.jwt: expected a mapping with algorithm, key_file, jwks_file, jwks_url, jwks_ca, audience, got \"key\"\n    jwt: key\n         ^"
      ))
    #expect(try drawn("listen:\n\tapp: 1") == "gateway.yaml:2:1: \(Self.tab)\n   app: 1\n  ^")
  }

  @Test func `of a long line the part around the fault is drawn`() throws {
    let text = "auth: { jwt: { audience: \(String(repeating: "a", count: 300)), key_file: missing.key } }"
    let lines = try drawn(text).split(separator: "\n")
    let (line, caret) = (try #require(lines.dropFirst().first), try #require(lines.dropFirst(2).first))
    #expect(line.count < 120 && line.dropFirst(caret.count - 1).hasPrefix("missing.key"))
  }
}
