import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import JSONWebToken
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import SharedStore

/// Values as a client that may write to the shared store could write them. Decoding them never traps, and nothing gets from them
/// into a SIP message, a push request or a terminal that a node of ours could not have written.
@Suite struct ValueTests {
  private let node = Incarnation(node: "n2", started: 1_790_000_000_000)

  private func text(_ value: some StoredValue) -> String { String(decoding: ValueCoding.encode(value), as: UTF8.self) }
  private func readLease(_ json: String) -> NodeLease? {
    ValueCoding.decode(StoredLease.self, Array(json.utf8), formats: .min...(.max))?.value
  }
  private func readEntry(_ json: String) -> CallEntry? {
    ValueCoding.decode(StoredEntry.self, Array(json.utf8))?.value(CallID(1))
  }
  private func readDevice(_ json: String) -> Device? {
    ValueCoding.decode(StoredDevice.self, Array(json.utf8))?.value(DeviceKey(user: "alice", device: "phone"))
  }

  private static let leg = """
    {"phase":"confirmed","trunk":"carrier","transport":"udp","local":"198.51.100.5:5060","remote":"192.0.2.9:5060","dialog":{"callID":"a@b",\
    "localTag":"1","remoteTag":"2","localParty":"<sip:a@b>;tag=1","remoteParty":"<sip:c@d>;tag=2","remoteTarget":"sip:c@192.0.2.9",\
    "routeSet":[],"localSequence":7}}
    """
  private static let call = """
    {"v":1,"s":"a@b","d":"in","t":"carrier","f":"+491","o":"+492","b":1790000000000,"k":1790000001000,"u":["alice"],"l":[LEG]}
    """.replacing("LEG", with: leg)

  private static let grant = """
    {"t":1790000000000,"s":1790000000000,"v":1,"g":{"numbers":["+15551","+15552"],"name":"A","max_calls":2,"record":true,\
    "diversions":{"no_answer":{"number":"+15559","after":15}}}}
    """
  private func readGrant(_ json: String, of user: String = "alice") -> SharedGrant? {
    ValueCoding.decode(StoredGrant.self, Array(json.utf8))?.value(user)
  }
  private func apply(_ grant: SharedGrant) -> UserGrants {
    var grants = UserGrants()
    let own = SharedGrant(user: "bob", grant: TokenGrant(numbers: ["+15552"]), issuedAt: 1, seen: 1)
    let rules = GrantRules(numbers: ["+1"], acceptsDiversions: true)
    for row in [own, grant] { _ = grants.apply([row], rules, at: 1_790_000_000_000) }
    return grants
  }

  @Test func `a grant that no token could have, or of no user, is none; what the rules forbid is not taken`() throws {
    let good = try #require(readGrant(Self.grant))
    #expect(good.grant?.issuedAt == 1_790_000_000_000 && apply(good)["alice"]?.numbers == ["+15551", "+15552"])
    let erased = try #require(readGrant(#"{"t":5,"s":5,"v":1}"#))
    #expect(erased.grant == nil && erased.issuedAt == 5)
    for (good, bad) in [
      ("\"t\":1790000000000", "\"t\":-1"), ("\"t\":1790000000000", "\"t\":9223372036854775807"), ("\"t\":1790000000000,", ""),
      ("\"s\":1790000000000,", ""), ("\"+15551\"", "\"<sip:x>\""), ("\"+15551\"", "\"+15552\""),
      ("\"max_calls\":2", "\"max_calls\":-1"),
      ("\"v\":1", "\"v\":2"), ("\"name\":\"A\"", "\"name\":\"A\\r\\n\""),
    ] { #expect(readGrant(Self.grant.replacing(good, with: bad)) == nil, "\(bad)") }
    for user in ["", "a\u{1b}[2J", String(repeating: "u", count: 257)] { #expect(readGrant(Self.grant, of: user) == nil) }
    let wide = try #require(readGrant(Self.grant.replacing("+15551", with: "+4915551")))
    #expect(apply(wide)["alice"] == nil)
  }

  @Test func `numbers that no clock and no count says are no value`() throws {
    let good = try #require(readEntry(Self.call))
    #expect(good.line.legs?.count == 1)
    let phone = text(StoredDevice(device("alice", "phone", seen: 5, revoked: 6)))
    #expect(readDevice(phone) != nil)
    let whole = text(StoredLease(lease(node, calls: 3)))
    #expect(readLease(whole)?.calls == 3)
    for number in [
      "-1", "-9223372036854775808", "9223372036854775807", "9223372036854775808", "1e300", "1.5", "true", "\"1\"", "[]",
    ] {
      for field in ["b", "k"] {
        #expect(
          readEntry(Self.call.replacing(try Regex("\"\(field)\":[0-9]+"), with: "\"\(field)\":\(number)")) == nil,
          "\(field) \(number)")
      }
      for field in ["f", "l", "x"] {
        #expect(
          readDevice(phone.replacing(try Regex("\"\(field)\":[0-9]+"), with: "\"\(field)\":\(number)")) == nil,
          "\(field) \(number)")
      }
      #expect(readLease(whole.replacing(/"calls":[0-9]+/, with: "\"calls\":\(number)")) == nil, "calls \(number)")
    }
    for started in ["-1", "-9223372036854775808", "9223372036854775807"] {
      #expect(readLease(whole.replacing("n2.1790000000000", with: "n2.\(started)")) == nil, "\(started)")
    }
    #expect(readEntry(Self.call.replacing("\"localSequence\":7", with: "\"localSequence\":4294967295")) == nil)
  }

  @Test func `what is computed with the times of a value that is taken does not overflow`() throws {
    let last = Int64(1) << 53
    for time in [0, last] {
      let entry = try #require(readEntry(Self.call.replacing(/"k":[0-9]+/, with: "\"k\":\(time)")))
      for now in [0, 1_790_000_000_000, last] { #expect(CallRecord(orphan: entry.line, at: now).connectedMs >= 0) }
      let device = try #require(readDevice(#"{"v":1,"f":\#(time),"l":\#(time),"x":\#(time)}"#))
      for now in [0, 1_790_000_000_000, last] {
        var registry = DeviceRegistry()
        registry.learn([device], of: "alice", at: now)
        registry.learn([device], of: "alice", at: now)
        _ = registry.seen(device.key, info: DeviceInfo(), at: now)
        #expect(registry.isRevoked(device.key))
        #expect(throws: Never.self) { try registry.allow(device.key) }
      }
    }
  }

  @Test func `nothing of a value ends a header, a URL or a line of a terminal`() {
    let whole = text(StoredLease(lease(node)))
    for bad in ["sip:10.0.0.1>;x=\\\"", "sip:h\\r\\nX-Forged: 1", "sip:a b", "sip:\\u0000", "sip:ü"] {
      #expect(readLease(whole.replacing(/"sip":"[^"]*"/, with: "\"sip\":\"\(bad)\"")) == nil, "\(bad)")
      #expect(readLease(whole.replacing(/"url":"[^"]*"/, with: "\"url\":\"\(bad)\"")) == nil, "\(bad)")
    }
    #expect(readLease(whole.replacing(/"version":"[^"]*"/, with: #""version":"\u001b[2J""#)) == nil)
    for field in ["callID", "localParty", "remoteTarget"] {
      #expect(readEntry(Self.call.replacing("\"\(field)\":\"", with: "\"\(field)\":\"x\\r\\nX-Forged: 1")) == nil, "\(field)")
    }
    for token in ["../../x", "ab\\r\\nX-Forged: 1", "", "zz"] {
      let device = readDevice(
        #"{"v":1,"f":1,"l":1,"b":[{"s":"apns","t":"\#(token)","o":"com.example.app.voip","at":1},{"s":"fcm","t":"good","at":2}]}"#
      )
      #expect(device?.bindings.map(\.target.token.exposed) == ["good"], "\(token): the others stay")
    }
  }

  /// As nodes of this format write them: whoever renames a property must not rename what is in the shared store.
  @Test func `each value is read from, and written with, the names that other nodes use`() throws {
    func object(_ value: some StoredValue) throws -> NSDictionary? {
      try JSONSerialization.jsonObject(with: Data(ValueCoding.encode(value))) as? NSDictionary
    }
    func isKept<Value: StoredValue>(_ type: Value.Type, _ json: String) throws -> Bool {
      let value = try #require(ValueCoding.decode(type, Array(json.utf8)), "\(json)")
      return try object(value) == JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSDictionary
    }
    #expect(
      try isKept(
        StoredLease.self,
        #"{"v":1,"i":"n2.1","url":"wss://n2","sip":"sip:a","admin":"http://a","drains":true,"refuses":true,"calls":1,"#
          + #""sessions":2,"version":"9","format":1,"oldest":1,"configuration":"c","down":{"t":"x"},"stale":"ff","e":9}"#))
    #expect(try isKept(StoredWhereabouts.self, #"{"v":1,"i":"n2.1","s":"x","bg":true,"caps":["wake"],"a":["work"]}"#))
    #expect(try isKept(StoredCallLocation.self, #"{"v":1,"n":3,"i":"n2.1","d":"in"}"#))
    #expect(try isKept(StoredEntry.self, Self.call.replacing("\"u\":[\"alice\"]", with: "\"u\":[\"alice\"],\"w\":\"bob\"")))
    #expect(
      try isKept(
        StoredDevice.self,
        #"{"v":1,"p":"ios","m":"m","os":"18","sdk":"1","a":["work"],"silent":true,"dnd":true,"f":1,"l":2,"x":3,"#
          + #""b":[{"s":"apns","t":"00","e":"sandbox","o":"a.voip","k":"AAEC","at":4,"off":true}]}"#))
    #expect(try isKept(StoredGrant.self, #"{"t":1,"s":2,"v":1,"g":{"numbers":["+15551"]}}"#))
    for message in [
      #"{"v":1,"f":"n2.1","k":"replaced","u":"a","d":"b","s":"x","e":5}"#, #"{"v":1,"f":"n2.1","k":"history","u":"a","n":7}"#,
      #"{"v":1,"f":"n2.1","k":"lost","u":"a","call":"00000000-0000-0000-0000-000000000001"}"#,
      #"{"v":1,"f":"n2.1","k":"came","u":"a","d":"b","w":{"v":1,"i":"n2.1","s":"x"}}"#,
      #"{"v":1,"f":"n2.1","k":"wake","u":"a","d":"b","c":{"v":1,"t":"call","call":"00000000-0000-0000-0000-000000000001","exp":1,"#
        + #""acct":"default","video":false,"gw":"wss://n1","wake":"w"}}"#,
    ] {
      #expect(try isKept(StoredMessage.self, message))
      #expect(ValueCoding.decode(StoredMessage.self, Array(message.utf8))?.value != nil)
    }
  }

  @Test func `another version's lease is read for what it says of formats; other values of it are not read`() throws {
    let newer = #"{"v":3,"i":"n9.5","url":"wss://n9","sip":"sip:10.0.0.9:5060","format":4,"oldest":2,"later":{"a":[1]}}"#
    let theirs = try #require(readLease(newer))
    #expect(theirs.format == 3 && theirs.reads == 2...4)
    #expect(!theirs.understands(lease(node)) && !lease(node).understands(theirs))
    let near = try #require(readLease(#"{"v":1,"i":"n9.5","url":"wss://n9","sip":"sip:10.0.0.9:5060","format":2}"#))
    #expect(near.reads == 1...2 && near.understands(lease(node)) && lease(node).understands(near))
    #expect(readLease(#"{"v":1,"i":"n9.5","url":"wss://n9","sip":"sip:10.0.0.9:5060","format":1,"oldest":2}"#) == nil)
    for version in ["0", "2", "3", "-1", "9223372036854775807"] {
      #expect(readEntry(Self.call.replacing("\"v\":1", with: "\"v\":\(version)")) == nil)
    }
    #expect(
      readEntry(Self.call.replacing("\"v\":1", with: "\"v\":1,\"later\":[{\"a\":null}]")) != nil, "unknown fields are ignored")
  }

  @Test func `a hundred thousand damaged values are read or dropped`() {
    var random = SplitMix64(seed: 19)
    let samples = [
      Self.call, text(StoredLease(lease(node))), text(StoredDevice(device("alice", "phone", seen: 5))), Self.grant,
    ].map { Array($0.utf8) }
    let pieces = [
      "-9223372036854775808", "9223372036854775807", "4294967295", "1e999", "null", "\\r\\n", "\u{0}", "\"", "{", "]",
      "99999999999999999999",
    ].map { Array($0.utf8) }
    var read = 0
    for number in 0..<100_000 {
      var bytes = samples[number % samples.count]
      for _ in 0...Int.random(in: 0...2, using: &random) {
        let location = Int.random(in: 0..<bytes.count, using: &random)
        let piece = pieces.randomElement(using: &random) ?? []
        switch Int.random(in: 0...2, using: &random) {
        case 0: bytes[location] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.replaceSubrange(location..<min(bytes.count, location + Int.random(in: 0...12, using: &random)), with: piece)
        default: bytes.removeSubrange(location..<min(bytes.count, location + Int.random(in: 0...30, using: &random)))
        }
        if bytes.isEmpty { bytes = [123] }
      }
      let json = String(decoding: bytes, as: UTF8.self)
      // Each is decoded as the type that it was made from, and one of eight as every other type, too: an object of another type
      // fails at its first key.
      let kind = number % samples.count
      let isForAll = number / samples.count % 8 == 0
      if kind == 0 || isForAll, let entry = readEntry(json) {
        read += 1
        _ = CallRecord(orphan: entry.line, at: 1_790_000_000_000)
      }
      if kind == 2 || isForAll, let device = readDevice(json) {
        read += 1
        var registry = DeviceRegistry()
        registry.learn([device], of: "alice", at: 1_790_000_000_000)
      }
      if kind == 1 || isForAll, readLease(json) != nil { read += 1 }
      if kind == 3 || isForAll, let grant = readGrant(json) {
        read += 1
        _ = apply(grant)
      }
    }
    #expect(read > 1_000, "some are still good: \(read)")
  }
}
