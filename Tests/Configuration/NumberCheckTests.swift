import Configuration
import Testing

/// `country`, and numbers that can never ring.
@Suite struct NumberCheckTests {
  private let key = "auth: { jwt: { key_file: jwt.key } }\n"

  private func warnings(_ text: String) throws -> [String] {
    try TemporaryFolder().parse(key + text).warnings.map { "\($0.path): \($0.message)" }
  }

  @Test(arguments: [
    ("DE", "DE"), ("de", "DE"), ("\"49\"", "DE"), ("49", "DE"), ("NO", "NO"), ("\"1\"", "US"), ("CA", "CA"), ("GG", "GG"),
  ])
  func `country is a region or its code, of users and of trunks`(text: String, region: String) throws {
    let settings = try TemporaryFolder().parse(
      key + """
        trunks: [ { name: a, peers: 192.0.2.1, numbers: { country: \(text) } } ]
        users: [ { id: alice, country: \(text), international: "99", national: "" } ]
        """)
    #expect(settings.trunks.first?.routing.numbers.country?.region == region)
    let own = settings.users.first?.country
    #expect(own?.region == region && own?.international == "99" && own?.national == "")
  }

  @Test(arguments: ["XX", "999", "0", "049", "+49", "Germany", "\"\"", "800", "[ DE ]"])
  func `a region that does not exist is a problem`(text: String) throws {
    let folder = try TemporaryFolder()
    let problems = folder.problems(key + "users: [ { id: alice, country: \(text) } ]\n")
    #expect(
      problems.contains { $0.contains("users[0].country: expected a region such as DE, or its country code") }, "\(problems)")
    #expect(folder.problems(key + "users: [ { id: alice, country: DE, country: AT } ]\n").contains { $0.contains("given twice") })
  }

  @Test func `a code of several regions says which one it means`() throws {
    let found = try warnings(
      "users: [ { id: alice, country: \"44\" }, { id: bob, country: GB }, { id: carol, country: \"49\" } ]\n")
    #expect(found == ["users[0].country: \"44\" means GB; write the region for one of the others: GG, IM, JE"])
    #expect(try warnings("users: [ { id: alice, country: \"1\" } ]\n").first?.contains("means US") == true)
  }

  @Test func `numbers that can never ring are warnings`() throws {
    let found = try warnings(
      """
      trunks: [ { name: a, peers: 192.0.2.1, uri: "sip:192.0.2.1" } ]
      users:
        - { id: alice, numbers: [ "+999123456", "+15551230001", "+1555", "200" ], allow: [ "+999", "+1", "+8" ] }
        - { id: bob, numbers: [ "253000" ], country: US, diversions: { busy: { number: "+12530000" } } }
      routes: { outbound: [ { prefix: "+", trunk: a }, { prefix: "+0", trunk: a } ] }
      """)
    #expect(found.contains("users[0].numbers[0]: \"+999123456\" can never ring: no region has this country code"))
    #expect(found.contains("users[0].numbers[2]: \"+1555\" can never ring: too short for a telephone number"))
    #expect(found.contains { $0.hasPrefix("users[0].allow[0]: \"+999\" fits no number") })
    #expect(found.contains { $0.hasPrefix("users[1].diversions.busy.number: \"+12530000\" can never ring: a local number") })
    #expect(found.contains { $0.hasPrefix("routes.outbound[1].prefix: \"+0\" fits no number") })
    #expect(found.count == 5, "\(found)")
  }

  @Test func `trunks of two countries and users of none are a warning`() throws {
    let trunks = """
      trunks:
        - { name: a, peers: 192.0.2.1, uri: "sip:192.0.2.1", numbers: { country: DE } }
        - { name: b, peers: 192.0.2.2, uri: "sip:192.0.2.2", numbers: { country: AT } }
      routes: { outbound: [ { prefix: "+", trunks: [ a, b ] } ] }

      """
    let found = try warnings(trunks + "users: [ { id: alice } ]\n")
    #expect(found.count == 1 && found[0].hasPrefix("trunks[1].numbers.country: is AT, that of trunk \"a\" DE"), "\(found)")
    #expect(try warnings(trunks + "users: [ { id: alice, country: DE } ]\n").isEmpty)
  }
}
