import Testing

@Suite struct ReachabilityTests {
  private static let top = """
    auth: { jwt: { key_file: jwt.key } }
    trunks: [ { name: a, peers: 10.0.0.1, uri: "sip:10.0.0.1" }, { name: b, peers: 10.0.0.2 } ]
    listen: { sip: { udp: 127.0.0.1:5060 } }

    """

  @Test(arguments: [
    (
      "routes: { inbound: [ { trunk: a, user: u }, { trunk: b, to: users }, { trunk: a, to: users } ] }",
      "4:70: routes.inbound[2]: unreachable: routes.inbound[0] matches every call of trunk \"a\"; move this row before it"
    ),
    (
      "routes: { inbound: [ { trunk: a, to: users }, { trunk: a, to: users } ] }",
      "4:47: routes.inbound[1]: equals routes.inbound[0]: remove one of them"
    ),
    (
      "timers: { ring: 20s }\nroutes: { inbound: { trunk: a, user: u, diversions: { unreached: { code: 486 } } } }",
      "5:66: routes.inbound[0].diversions.unreached.after: waits 20s, but the call stops ringing after 20s (no_answer.after, or timers.ring): write less than that"
    ),
    (
      "routes: { outbound: [ { prefix: \"0049\", trunk: a } ] }",
      "4:33: warning: routes.outbound[0].prefix: \"0049\" fits no number that begins with \"+\": write \"+49\", too"
    ),
    (
      "routes: { outbound: [ { prefix: \"+49 30\", trunk: a } ] }",
      "4:33: routes.outbound[0].prefix: expected the beginning of a number, got \"+49 30\""
    ),
  ])
  func `a row that no call gets to has one message`(text: String, message: String) throws {
    #expect(try TemporaryFolder().checked(Self.top + text + "\nusers: { id: u }") == ["gateway.yaml:" + message])
  }

  @Test func `rows for several trunks, and the users' numbers before one user, are all of use`() throws {
    let rows = "{ trunk: a, to: users }, { trunk: b, user: u }, { trunk: a, user: u }"
    #expect(try TemporaryFolder().checked(Self.top + "users: { id: u }\nroutes: { inbound: [ \(rows) ] }").isEmpty)
  }

  @Test func `a number rule behind a shorter prefix is of no use`() throws {
    let said = try TemporaryFolder().checked(
      """
      auth: { jwt: { key_file: jwt.key } }
      trunks:
        - name: a
          peers: 10.0.0.1
          numbers: { outbound: [ { prefix: "+4", strip: 1 }, { prefix: "+49", add: "0" }, { prefix: "+1" } ] }
      """)
    #expect(
      said == [
        "gateway.yaml:5:56: trunks[0].numbers.outbound[1]: unreachable: prefix \"+4\" before it matches all that begin "
          + "with \"+49\"; move this row before it"
      ])
  }

  @Test(arguments: [
    ("unreached: { code: 480, after: 25s }, no_answer: { code: 480, after: 30s }", true),
    ("unreached: { code: 480, after: 30s }, no_answer: { code: 480, after: 30s }", false),
    ("unreached: { code: 480, after: 50s }", false), ("no_answer: { code: 480, after: 60s }", true),
  ])
  func `a user's unreached comes before the end of the ringing`(rules: String, isTaken: Bool) throws {
    let said = try TemporaryFolder().checked(Self.top + "users: { id: u, diversions: { \(rules) } }")
    #expect(said.isEmpty == isTaken && said.allSatisfy { $0.contains("users[0].diversions.unreached.after: waits") })
  }

  @Test func `a route may give the user's calls the time they need`() throws {
    let said = try TemporaryFolder().checked(
      Self.top + "users: { id: u, diversions: { unreached: { code: 480, after: 50s } } }\n"
        + "routes: { inbound: { trunk: a, to: users, diversions: { no_answer: { code: 480, after: 60s } } } }")
    #expect(said.isEmpty)
  }

  @Test func `a prefix with 00 beside the one with + is meant`() throws {
    let rows = "{ prefix: \"00\", trunk: a }, { prefix: \"+\", trunk: a }"
    let rest = "users: { id: u, allow: [ \"+4\", \"0049\" ] }\nroutes: { outbound: [ \(rows) ] }"
    #expect(try TemporaryFolder().checked(Self.top + rest).isEmpty)
  }

  @Test func `a number in two spellings is one number`() throws {
    let rest = "users: [ { id: u, numbers: \"+4930123456\" }, { id: v, numbers: [ \"4931\", \"004930123456\" ] } ]"
    #expect(
      try TemporaryFolder().checked(Self.top + rest) == [
        "gateway.yaml:4:73: users[1].numbers[1]: 004930123456 already belongs to user \"u\""
      ])
  }

  @Test func `numbers that a user may dial and no route serves are a warning`() throws {
    let rest = "routes: { outbound: [ { prefix: \"+49\", trunk: a } ] }\nusers: { id: u, allow: [ \"+\", \"+4930\", \"+1\" ] }"
    #expect(
      try TemporaryFolder().checked(Self.top + rest) == [
        "gateway.yaml:5:40: warning: users[0].allow[2]: no row of routes.outbound serves numbers with \"+1\""
      ])
  }
}
