import Foundation
import Testing

extension Interop {
  /// Directories and histories: the SDK's phones, a Python client and a carrier's caller with the real process.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct DirectoryTests {
    private static let caller = "+15557770001"

    private func gateway(_ rules: String = "") async throws -> GatewayUnderTest {
      try await GatewayUnderTest([
        "routes: { decline_code: 603, inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+\", trunk: carrier } ] }",
        "users: [ { id: alice, numbers: [\"+15551230001\"]\(rules) }, { id: bob, numbers: [\"+15551230002\"] } ]",
      ])
    }

    /// Runs the command line beside the gateway.
    private func command(_ gateway: GatewayUnderTest, _ words: [String], status: Int32 = 0) async throws -> String {
      let command = try Spawned(
        "command", Surroundings.trunkline, words + ["--config", gateway.folder + "/gateway.yaml"], in: gateway.folder)
      #expect(try await command.finish(within: 20) == status, "\(words): \(command.text)")
      return command.text
    }

    private func importing(_ text: String, _ gateway: GatewayUnderTest, _ words: [String] = [], status: Int32 = 0) async throws
      -> String
    {
      let file = gateway.folder + "/contacts.csv"
      try ("number,label,kind\n" + text).write(toFile: file, atomically: true, encoding: .utf8)
      return try await command(gateway, ["directory", "import", file, "--scope", "user:alice"] + words, status: status)
    }

    private func admin(_ method: String, _ path: String, _ gateway: GatewayUnderTest, _ body: String = "") throws -> (
      status: Int, json: [String: Any]
    ) {
      let answer = try HTTP.request(method, path, port: gateway.admin, headers: ["Content-Type: text/csv"], body: body)
      return (answer.status, try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any] ?? [:])
    }

    private func call(_ gateway: GatewayUnderTest, _ more: [String] = ["--talk", "0.3"]) throws -> Spawned {
      try Spawned(
        "caller", Surroundings.lab,
        [
          "trunk", "--gateway", "127.0.0.1:\(gateway.sip)", "--listen", "127.0.0.1:\(try FreePorts.both())", "--events", "--call",
          "+15551230001", "--from", Self.caller,
        ] + more, in: gateway.folder)
    }

    @Test
    func
      `DIR-2, DIR-5, REC-3: a blocked caller gets decline_code and no device rings; the block goes by a difference, and the next call is named`()
      async throws
    {
      let gateway = try await gateway()
      let phone = try await Peers.ownPhone(gateway, device: "cell", ["--directory", "--answer", "--calls", "1"])
      let imported = try await importing("+15557770001,Spam Inc,block\n+4930123456,Zoë,identify\n", gateway)
      #expect(imported.contains("2 contacts in user:alice: 2 new, 0 changed, 0 removed"), "\(imported)")
      let first = try await told(phone, "directory")
      #expect(first["names"] == "4930123456 Zoë, 15557770001 Spam Inc" && first["blocked"] == "15557770001")
      #expect(await eventually(within: 5) { try gateway.metric("trunkline_directory_blocked") == 1 })

      let refused = try call(gateway)
      #expect(try await refused.finish(within: 10) != 0, "\(refused.text)")
      #expect(try await told(refused, "failed")["code"] == "603", "\(refused.text)")
      let record = try #require(try await gateway.records(1).first)
      #expect(record["devices"] as? Int == 0 && (record["end"] as? [String: Any])?["reason"] as? String == "blocked", "\(record)")
      let blocked = try await told(phone, "history") { $0["outcome"] == "blocked" }
      #expect(blocked["peer"] == Self.caller && blocked["name"] == "Spam Inc")
      #expect(!phone.events.contains { ["ringing", "call"].contains($0["event"] as? String ?? "") }, "\(phone.text)")

      let asked = Date().timeIntervalSince1970 * 1_000
      let change = try admin(
        "POST", "/v1/directory/user:alice", gateway, "number,label,kind\n+15557770001,Ann,identify\n+4930123456,,remove\n")
      #expect(change.status == 200 && change.json["changed"] as? Int == 1 && change.json["removed"] as? Int == 1, "\(change)")
      let delta = try await told(phone, "directory") { $0["from"]?.isEmpty == false }
      #expect(delta["names"] == "15557770001 Ann" && delta["blocked"] == "")
      print("delta of one entry at the device after", Int((Double(delta["at"] ?? "") ?? 0) - asked), "ms")

      let taken = try call(gateway)
      #expect(try await taken.finish(within: 15) == 0, "\(taken.text)")
      #expect(try await gateway.records(2).last?["device"] as? String == "cell")
      _ = try await phone.finish(within: 10)
      gateway.note(invites: gateway.records.compactMap { $0["sipCallId"] as? String })
      try await gateway.finish()
    }

    @Test func `history over two devices: answered elsewhere, missed, diverted; erased on request`() async throws {
      let gateway = try await gateway(", diversions: { declined: { user: bob } }")
      let first = try await Peers.ownPhone(gateway, device: "first", ["--directory", "--answer", "--calls", "1"])
      let stranger = try await stranger(gateway, "tablet")
      let answered = try call(gateway)
      #expect(try await answered.finish(within: 15) == 0, "\(answered.text)")
      let mine = try await stranger.event("received") { $0["t"] as? String == "hist.changed" }
      #expect((mine["d"] as? [String: Any])?["id"] as? Int == 1)
      _ = try await first.finish(within: 10)

      let missed = try call(gateway)
      _ = try await newOffer(stranger, gateway)
      missed.signal(SIGINT)
      _ = try await missed.finish(within: 10)
      _ = try await gateway.records(2)
      let entries = try await history(stranger, 2)
      #expect(entries.map { $0["outcome"] as? String } == ["missed", "answeredElsewhere"], "\(entries)")
      #expect(entries.map { $0["device"] as? String } == [nil, "first"])

      let bob = try await Peers.ownPhone(gateway, user: "bob", device: "desk", ["--answer", "--calls", "1"])
      let diverted = try call(gateway)
      let id = try await newOffer(stranger, gateway)
      stranger.type(
        #"{"t":"call.reject","id":"\#(UUID().uuidString.lowercased())","seq":1,"call":"\#(id)","d":{"reason":"declined"}}"#)
      #expect(try await diverted.finish(within: 15) == 0, "\(diverted.text)")
      _ = try await bob.finish(within: 10)
      _ = try await gateway.records(3)
      let three = try await history(stranger, 3)
      #expect(three.first?["outcome"] as? String == "diverted" && three.first?["device"] == nil, "\(three)")

      let gone = try admin("DELETE", "/v1/users/alice/data", gateway)
      #expect(
        gone.status == 200 && gone.json["calls"] as? Int == 3 && (gone.json["remains"] as? String)?.contains("records") == true)
      let refused = try await command(gateway, ["users", "erase", "alice"], status: 1)
      #expect(refused.contains("DELETE"), "\(refused)")
      stranger.closeInput()
      _ = await eventually(within: 5) { !stranger.isRunning }
      gateway.note(invites: gateway.records.compactMap { $0["sipCallId"] as? String })
      try await gateway.finish()
      let erased = try await command(gateway, ["users", "erase", "bob"])
      #expect(erased.contains("erased of bob: 1 calls") && erased.contains("not erased: call records"), "\(erased)")
    }

    @Test func `a stranger's requests for missing data, too many and malformed ones, get typed answers, and the session lives`()
      async throws
    {
      let gateway = try await gateway()
      let stranger = try await stranger(gateway, "odd")
      func say(_ t: String, _ d: String) async throws -> (String, [String: Any]) {
        let id = UUID().uuidString.lowercased()
        stranger.type(#"{"t":"\#(t)","id":"\#(id)","d":\#(d)}"#)
        let received = try await stranger.event("received") { $0["re"] as? String == id }
        return (received["t"] as? String ?? "", received["d"] as? [String: Any] ?? [:])
      }
      let bad: [(String, String)] = [
        ("dir.get", #"{"have":-1}"#), ("dir.get", #"{"have":"x"}"#), ("dir.get", #"{"after":1e300}"#),
        ("hist.list", #"{"limit":0}"#),
        ("hist.list", #"{"limit":51}"#), ("hist.list", #"{"before":0.5}"#), ("hist.resolve", "{}"),
        ("hist.resolve", #"{"handles":[1]}"#),
        ("hist.resolve", #"{"handles":["\#(String(repeating: "9", count: 300))"]}"#),
      ]
      for (type, d) in bad {
        let (t, answer) = try await say(type, d)
        #expect(t == "err" && answer["code"] as? String == "badRequest", "\(type) \(d): \(answer)")
      }
      let (_, nothing) = try await say("dir.get", #"{"have":9007199254740991}"#)
      #expect((nothing["dir"] as? [String: Any])?["parts"] as? Int != nil, "\(nothing)")
      let (_, empty) = try await say("hist.list", "{}")
      #expect(((empty["hist"] as? [String: Any])?["calls"] as? [Any])?.isEmpty == true)
      let (_, names) = try await say("hist.resolve", #"{"handles":["","+","%00","+15557770001"]}"#)
      #expect((names["names"] as? [Any])?.isEmpty == true)

      let path = "/v1/directory/user:alice"
      let imports: [(String, String, Int, String)] = [
        (
          "PUT", "number,label,kind\n+15550000001,a,\n+15550000001,b,\n", 400,
          "line 3: +15550000001 occurs twice, first in line 2"
        ),
        ("PUT", "number,label,kind\n+15550000001,a", 400, "line 2: ends without a line break"),
        ("PUT", "", 400, "line 1: the file is empty"), ("PATCH", "", 405, "PUT, POST, DELETE"),
        ("POST", "number,label,kind\n+15550000001,,delete\n", 400, "not a kind of contact"),
      ]
      for (method, body, status, why) in imports {
        let answer = try admin(method, path, gateway, body)
        let message = answer.json["detail"] as? String ?? ""
        #expect(answer.status == status && message.contains(why), "\(method) \(body): \(answer)")
      }
      #expect(try admin("PUT", "/v1/directory/nobody", gateway, "number,label,kind\n").status == 400)
      #expect(try admin("DELETE", "/v1/calls", gateway).status == 405)
      let many = "number,label,kind\n" + (0..<3_000).map { "+\(15_550_000_000 + $0),Name \($0),\n" }.joined()
      #expect(try admin("PUT", path, gateway, many).json["added"] as? Int == 3_000, "more than 64 KiB of body")
      let list = try await importing("+15550000001,a,\n015550000002,b,\n", gateway, status: 2)
      #expect(list.contains("line 3") && list.contains("nothing was changed"), "\(list)")

      let token = try await gateway.token("alice", "curl")
      func get(_ query: String = "", _ headers: [String] = []) throws -> (status: Int, json: [String: Any]) {
        let answer = try HTTP.request(
          "GET", "/v1/directory" + query, port: gateway.app, headers: ["Authorization: Bearer \(token)"] + headers)
        return (answer.status, (try? JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]) ?? [:])
      }
      let whole = try get()
      let version = try #require(whole.json["version"] as? Int)
      #expect(whole.status == 200 && (whole.json["identify"] as? [Any])?.count == 3_000 && whole.json["next"] == nil)
      #expect(try get("", ["If-None-Match: \"\(version)-0\""]).status == 304)
      #expect(try get("?after=15550002989&version=\(version)").json["identify"].map { ($0 as? [Any])?.count } == 10)
      #expect(try get("?after=5&version=\(version - 1)").status == 412 && get("?after=x").status == 400)
      #expect(try HTTP.request("GET", "/v1/directory", port: gateway.app, headers: ["Authorization: Bearer x.y.z"]).status == 401)
      #expect(try HTTP.request("GET", "/v1/directory", port: gateway.app).status == 401)
      stranger.closeInput()
      _ = await eventually(within: 5) { !stranger.isRunning }
      try await gateway.finish()
    }

    /// The fields of an event that one of our peers reported, and its time.
    private func told(_ peer: Spawned, _ event: String, where matches: @escaping ([String: String]) -> Bool = { _ in true })
      async throws -> [String: String]
    {
      let line = try await peer.event(event) { matches($0["fields"] as? [String: String] ?? [:]) }
      return (line["fields"] as? [String: String] ?? [:]).merging(["at": "\(line["at"] as? Double ?? 0)"]) { first, _ in first }
    }

    private func stranger(_ gateway: GatewayUnderTest, _ device: String) async throws -> Spawned {
      let token = try await gateway.token("alice", device)
      let peer = try Peers.python(
        "stranger", "directory_stranger.py",
        ["--url", "ws://127.0.0.1:\(gateway.app)/v1/connect", "--token", token, "--device", device], gateway)
      let welcome = try await peer.event("received") { $0["t"] as? String == "welcome" }
      let caps = (welcome["d"] as? [String: Any])?["caps"] as? [String] ?? []
      #expect(caps.contains("dir") && caps.contains("hist"), "\(caps)")
      return peer
    }

    /// The call of the newest offer that is not for an ended call.
    private func newOffer(_ peer: Spawned, _ gateway: GatewayUnderTest) async throws -> String {
      let known = Set(gateway.records.compactMap { $0["call"] as? String })
      let offer = try await peer.event("received") { event in
        event["t"] as? String == "call.offer" && !known.contains(event["call"] as? String ?? "")
      }
      return try #require(offer["call"] as? String)
    }

    /// The history once it has this many calls.
    private func history(_ peer: Spawned, _ count: Int) async throws -> [[String: Any]] {
      _ = try await peer.event("received") {
        $0["t"] as? String == "hist.changed" && ($0["d"] as? [String: Any])?["id"] as? Int ?? 0 >= count
      }
      let id = UUID().uuidString.lowercased()
      peer.type(#"{"t":"hist.list","id":"\#(id)","d":{"limit":10}}"#)
      let answer = try await peer.event("received") { $0["re"] as? String == id }
      return ((answer["d"] as? [String: Any])?["hist"] as? [String: Any])?["calls"] as? [[String: Any]] ?? []
    }
  }
}
