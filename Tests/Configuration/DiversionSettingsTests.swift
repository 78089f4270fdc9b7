import CallFlow
import Configuration
import Foundation
import Testing
import TrunklineAudioCodecs

@Suite struct DiversionSettingsTests {
  let key = "auth: { jwt: { key_file: jwt.key } }\n"

  private func folder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    let samples = (0..<1_600).map { Int16($0) }
    try Data(WAVFile.bytes(of: samples)).write(to: URL(fileURLWithPath: folder.path + "/away.wav"))
    try "no sound".write(toFile: folder.path + "/text.wav", atomically: true, encoding: .utf8)
    return folder
  }

  @Test func `every rule of a user and of a route is read`() throws {
    let folder = try folder()
    defer { withExtendedLifetime(folder) {} }
    let settings = try ConfigurationFile.parse(
      key + """
        trunks: [ { name: c, peers: [ 127.0.0.1 ] } ]
        users:
          - { id: bob, numbers: [ "+2" ] }
          - id: alice
            numbers: [ "+1" ]
            diversions:
              unreached: { number: "+15557654321", show_caller: true, after: 15s }
              no_answer: { user: bob, after: 25s }
              busy: { code: 600 }
              declined: { play: away.wav, shows: diverted }
              media_failed: { play: away.wav, early: true }
        routes:
          inbound: [ { trunk: c, to: users, diversions: { busy: { code: 480 } } } ]
        """, file: "gateway.yaml", directory: folder.path)
    let rules = settings.users[1].diversions.rules
    guard case .number("+15557654321", true)? = rules[.unreached]?.target, case .user("bob")? = rules[.noAnswer]?.target,
      case .code(600)? = rules[.busy]?.target, case .recording(let diverted)? = rules[.declined]?.target,
      case .recording(let early)? = rules[.mediaFailed]?.target
    else {
      Issue.record("\(rules)")
      return
    }
    #expect(rules[.unreached]?.after == .seconds(15) && rules[.noAnswer]?.after == .seconds(25) && rules[.busy]?.after == nil)
    #expect(diverted.name == "away.wav" && !diverted.isMissed && !diverted.isEarly && early.isMissed && early.isEarly)
    #expect(diverted.audio.recording == Recording((0..<1_600).map { Int16($0) }))
    #expect(diverted.audio === early.audio, "a file is read once")
    guard case .code(480)? = settings.routes.inbound[0].diversions.rules[.busy]?.target else {
      Issue.record("the route has no rule")
      return
    }
    #expect(settings.users[0].diversions.rules.isEmpty)
  }

  @Test func `numbers, users and routes have accounts`() throws {
    let folder = try folder()
    defer { withExtendedLifetime(folder) {} }
    let settings = try ConfigurationFile.parse(
      key + """
        trunks: [ { name: c, peers: [ 127.0.0.1 ] } ]
        users: [ { id: alice, account: home, numbers: [ "+1", { number: "+2", account: work } ] } ]
        routes: { inbound: [ { trunk: c, to: users, account: shop } ] }
        """, file: "gateway.yaml", directory: folder.path)
    #expect(settings.users[0].numbers == ["+1", "+2"] && settings.users[0].numberAccounts == ["+2": "work"])
    #expect(settings.users[0].account == "home" && settings.routes.inbound[0].account == "shop")
    for (wrong, problem) in [
      ("[ { account: work } ]", "number is missing"), ("[ { number: x } ]", "expected a number such as"),
      ("[ { number: \"+1\", account: \"a b\" } ]", "expected an account's name"),
      ("[ { number: \"+1\", user: b } ]", "unknown key"),
    ] {
      #expect {
        try ConfigurationFile.parse(
          key + "users: [ { id: alice, numbers: \(wrong) } ]", file: "f", directory: folder.path)
      } throws: { "\($0)".contains(problem) }
    }
  }

  @Test func `every mistake is named at its path`() throws {
    let folder = try folder()
    func problems(_ rule: String) throws -> [String] {
      let text =
        key + """
          users:
            - { id: bob, numbers: [ "+15551230002" ] }
            - { id: alice, numbers: [ "+15551230001" ], diversions: { \(rule) } }
          """
      do {
        _ = try ConfigurationFile.parse(text, file: "f", directory: folder.path)
        return []
      } catch {
        return error.problems.map { "\($0.path): \($0.message)".replacingOccurrences(of: folder.path, with: "DIR") }
      }
    }
    let one = "needs exactly one of user: ID, number: \"+15551230009\", play: FILE.wav, code: 486"
    for (rule, said) in [
      ("busy: { }", "users[1].diversions.busy: " + one),
      ("busy: { user: bob, code: 486 }", "users[1].diversions.busy: " + one),
      ("busy: { user: carol }", "users[1].diversions.busy.user: there is no user \"carol\""),
      ("busy: { user: alice }", "users[1].diversions.busy.user: is the user itself"),
      (
        "busy: { number: \"+15551230002\" }",
        "users[1].diversions.busy.number: +15551230002 is a user's number here: write user: ID"
      ),
      ("busy: { number: bob }", "users[1].diversions.busy.number: expected a number such as \"+15551230009\", got \"bob\""),
      ("busy: { code: 200 }", "users[1].diversions.busy.code: 200 is outside 400...699"),
      ("busy: { play: none.wav }", "users[1].diversions.busy.play: cannot read DIR/none.wav: No such file or directory"),
      ("busy: { play: text.wav }", "users[1].diversions.busy.play: DIR/text.wav: not a RIFF WAVE file (or over 120 MB)"),
      ("busy: { code: 486, early: true }", "users[1].diversions.busy.early: goes with play:"),
      (
        "busy: { code: 486, after: 5s }",
        "users[1].diversions.busy.after: unknown key; known here: user, number, show_caller, play, early, shows, code"
      ),
      ("no_answer: { code: 486, after: 0s }", "users[1].diversions.no_answer.after: 0ms is outside 1s...10m"),
    ] {
      #expect(try problems(rule) == [said], "\(rule)")
    }
    #expect(try problems("never: { code: 486 }").first?.hasPrefix("users[1].diversions.never: unknown key") == true)
  }
}
