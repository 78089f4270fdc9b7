import AppSessions
import Configuration
import Testing

/// `users:` as a list, as `any`, and both.
@Suite struct UsersTests {
  private let key = "auth: { jwt: { key_file: jwt.key } }\n"

  @Test func `any alone is every sub of a valid token, without limits of its own`() throws {
    for text in ["users: any\n", "users: [ any ]\n", "users: { id: any }\n"] {
      let settings = try TemporaryFolder().parse(key + text)
      #expect(settings.users.isEmpty && settings.anyUser?.id == "" && settings.anyUser?.numbers == [])
      #expect(settings.anyUser?.allowance.prefixes == nil && settings.anyUser?.allowance.calls == nil)
    }
    #expect(try TemporaryFolder().parse(key).anyUser == nil)
  }

  @Test func `listed users stand before any, which may say what holds for the others`() throws {
    let settings = try TemporaryFolder().parse(
      key + """
        users:
          - { id: alice, numbers: [ "+15551230001" ] }
          - { id: any, max_calls: 2, calls_per_hour: 20, country: "49", name: Example }
        """)
    #expect(settings.users.map(\.id) == ["alice"])
    #expect(settings.anyUser?.allowance.calls == 2 && settings.anyUser?.allowance.callsPerHour == 20)
    #expect(settings.anyUser?.country?.code == "49" && settings.anyUser?.name == "Example")
  }

  @Test func `claims of any are what tokens may grant, within what any allows`() throws {
    let settings = try TemporaryFolder().parse(
      key + """
        users:
          - { id: any, max_calls: 2, calls_per_hour: 20, allow: [ "+49" ], claims: { numbers: [ "+1555" ], diversions: true } }
        """)
    #expect(
      settings.grantRules
        == GrantRules(numbers: ["+1555"], acceptsDiversions: true, allow: ["+49"], maxCalls: 2, callsPerHour: 20))
    #expect(settings.grantRules?.maxNumbers == 10)
    #expect(try TemporaryFolder().parse(key + "users: any\n").grantRules == nil)
    let all = try TemporaryFolder().parse(key + "users: [ { id: any, claims: { numbers: [ \"\" ], max_numbers: 100 } } ]\n")
    #expect(all.grantRules?.numbers == [""] && all.grantRules?.maxNumbers == 100)
  }

  @Test func `a webhook of any is asked about users, in place of claims`() throws {
    let folder = try TemporaryFolder()
    let hook = "webhook: { url: \"https://example.org/users\", key_file: jwt.key"
    let settings = try folder.parse(key + "users: [ { id: any, \(hook), cache: 5 } } ]\n")
    #expect(settings.userSource?.webhook.url == "https://example.org/users" && settings.userSource?.cache == .seconds(5))
    #expect(try folder.parse(key + "users: [ { id: any, \(hook) } } ]\n").userSource?.cache == .seconds(60))
    #expect(
      folder.problems(key + "users: [ { id: any, claims: { numbers: [ \"+1\" ] }, \(hook) } } ]\n").contains {
        $0.hasSuffix("users[0].webhook: excludes claims: choose one of the two")
      })
    #expect(
      folder.problems(key + "users: [ { id: any, webhook: { url: \"http://example.org/users\" } } ]\n").map {
        String($0.split(separator: " ", maxSplits: 1)[1].prefix(44))
      } == ["users[0].webhook: key_file is missing: the s", "users[0].webhook.url: expected a URL: https:"])
  }

  @Test func `claims are for any alone`() throws {
    let folder = try TemporaryFolder()
    #expect(
      folder.problems(key + "users: [ { id: alice, claims: { numbers: [ \"+1\" ] } } ]\n")
        == ["gateway.yaml:2:31: users[0].claims: needs id: any: this user is defined by the file"])
    #expect(
      folder.problems(key + "users: [ { id: any, claims: { numbers: [ alice ], max_numbers: 101 } } ]\n").map {
        String($0.split(separator: " ", maxSplits: 1)[1].prefix(40))
      } == ["users[0].claims.numbers[0]: expected the", "users[0].claims.max_numbers: 101 is outs"])
  }

  @Test func `any has no number, and is the last`() throws {
    let folder = try TemporaryFolder()
    #expect(
      folder.problems(key + "users: [ any, { id: alice } ]\n")
        == ["gateway.yaml:2:10: users[0]: any means all other users: write it last, and once"])
    #expect(
      folder.problems(key + "users: [ { id: any }, any ]\n")
        == ["gateway.yaml:2:10: users[0]: any means all other users: write it last, and once"])
    #expect(
      folder.problems(key + "users: { id: any, numbers: [ \"+15551230001\" ] }\n")
        == ["gateway.yaml:2:28: users[0].numbers: a number belongs to one user: name the user, or see trunkline users import"])
    #expect(
      folder.problems(key + "users: every\n") == ["gateway.yaml:2:8: users[0]: expected a mapping with id, or any, got \"every\""]
    )
  }

  @Test func `with any, routes and diversions may name users that are not listed`() throws {
    let rest = """
      trunks: [ { name: t, peers: [ 192.0.2.1 ] } ]
      routes: { inbound: [ { trunk: t, user: bob, diversions: { busy: { user: carol } } } ] }

      """
    let folder = try TemporaryFolder()
    #expect(folder.problems(key + "users: any\n" + rest).isEmpty)
    #expect(folder.problems(key + rest).count == 2)
  }
}
