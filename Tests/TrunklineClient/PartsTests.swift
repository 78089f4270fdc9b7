import Foundation
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineHPKE

@testable @_spi(Fuzzing) import TrunklineClient

@Suite struct AudioRingTests {
  @Test func `what is written is read, in order, by another thread, and nothing else`() async {
    let ring = AudioRing(capacity: 512)
    let total = 200_000
    let writer = Thread {
      var next = 0
      while next < total {
        let frame = (0..<80).map { Int16(truncatingIfNeeded: next + $0) }
        if ring.write(frame.span) { next += 80 } else { sched_yield() }
      }
    }
    writer.start()
    var (seen, isRight) = (0, true)
    var frame = [Int16](repeating: 0, count: 160)
    while seen < total {
      var room = frame.mutableSpan
      guard ring.read(into: &room) else {
        sched_yield()
        continue
      }
      for (index, sample) in frame.enumerated() where sample != Int16(truncatingIfNeeded: seen + index) { isRight = false }
      seen += 160
    }
    #expect(isRight && ring.count == 0)
  }

  @Test func `what does not fit is refused whole, what is not there is not read`() {
    let ring = AudioRing(capacity: 64)
    let full = [Int16](repeating: 1, count: 64)
    #expect(ring.write(full.span) && !ring.write([1].span) && ring.count == 64)
    var frame = [Int16](repeating: 0, count: 65)
    var room = frame.mutableSpan
    let wasRead = ring.read(into: &room)
    #expect(!wasRead)
    ring.drain()
    #expect(ring.count == 0 && ring.write(full.span))
  }
}

/// What every audio device guarantees (AUD-2, AUD-4, C6, C7).
@Suite struct AudioDeviceTests {
  @Test(arguments: [0, 1]) func `AUD-4: the four phases, in any order that the system may choose`(which: Int) {
    let device: any AudioDevice = which == 0 ? FileAudio([1, 2, 3], repeats: true) : NoAudio()
    let handle = AudioHandle()
    #expect(!device.start(), "not before configure")
    for _ in 0..<3 {
      #expect(device.configure(handle) && device.configure(handle), "configure may be repeated")
      #expect(device.start())
      device.stop()
      device.stop()
      #expect(device.start(), "a hold, and back")
      device.release()
      device.release()
      #expect(!device.start(), "not after release")
    }
  }

  @Test func `a file is played from the moment that the call is connected`() async {
    let handle = AudioHandle()
    let device = FileAudio([Int16](repeating: 7, count: 320))
    #expect(device.configure(handle) && device.start())
    var frame = [Int16](repeating: 9, count: 320)
    func next() async -> [Int16] {
      while true {
        var room = frame.mutableSpan
        if handle.captured.read(into: &room) { return frame }
        await Task.yield()
      }
    }
    #expect(await next().allSatisfy { $0 == 0 })
    handle.connected.store(true, ordering: .relaxed)
    var heard: [Int16] = []
    while heard.count(where: { $0 == 7 }) < 320 { heard += await next() }
    device.release()
    #expect(device.drainReceived().spokenSince != nil)
  }

  /// 300 Hz at 8 kHz stay 300 Hz at 16 kHz: in each 20 ms the device makes twice as many samples of what it says, and half as
  /// many of what it hears.
  @Test(.timeLimit(.minutes(1))) func `what was recorded on a telephone line is said and heard at the rate of the device`() async
  {
    let handle = AudioHandle()
    let tone = (0..<160).map { Int16(8_000 * sin(2 * Double.pi * 300 * Double($0) / 8_000)) }
    let wide = (0..<320).map { Int16(8_000 * sin(2 * Double.pi * 300 * Double($0) / 16_000)) }
    let device = FileAudio(tone, sampleRateHz: 8_000, repeats: true)
    handle.connected.store(true, ordering: .relaxed)
    for _ in 0..<8 { handle.played.write(wide.span) }
    #expect(device.configure(handle) && device.start())
    defer { device.release() }
    while handle.captured.count < 8 * 320, !Task.isCancelled { await Task.yield() }
    var captured = [Int16](repeating: 0, count: 8 * 320)
    var room = captured.mutableSpan
    let isWhole = handle.captured.read(into: &room)
    #expect(isWhole)
    var heard: [Int16] = []
    while heard.count < 8 * 160, !Task.isCancelled {
      heard += device.drainReceived().samples
      await Task.yield()
    }
    // after the eight frames silence is heard, and there is more of it the later this check runs
    for (samples, rate) in [(captured, 16_000.0), (Array(heard.prefix(8 * 160)), 8_000)] {
      let some = samples[(samples.count / 4)..<(samples.count / 2)]
      let peak = some.map { abs(Int($0)) }.max() ?? 0
      let crossings = zip(some, some.dropFirst()).count { ($0 < 0) != ($1 < 0) }
      #expect((7_700...8_300).contains(peak), "at \(rate) Hz \(peak)")
      #expect(abs(Double(crossings) - 600 * Double(some.count) / rate) < 2, "at \(rate) Hz \(crossings) of \(some.count)")
    }
  }
}

@Suite struct BurstTests {
  /// An iPhone's audio unit reads 85 samples at a time, or 171, and not at the media thread's ticks: the ready audio must last
  /// until the next one.
  @Test(.timeLimit(.minutes(1)), arguments: [0, 171, 400])
  func `what a unit reads at once is ready beyond the frame of each tick`(burst: Int) async throws {
    let handle = AudioHandle()
    handle.expectBursts(of: burst)
    let thread = try #require(MediaThread(handle) { _ in })
    let call = Identifier(high: 1, low: 1)
    thread.give(.call(call, .offer(generation: 1)))
    thread.give(.listen(call))
    thread.give(.audio(true))
    thread.start()
    defer { thread.give(.stop) }
    while handle.played.count <= 320 + burst, !Task.isCancelled { await Task.yield() }
    #expect((321 + burst...640 + burst).contains(handle.played.count))
  }
}

/// What connections to TURN servers report to the media thread.
@Suite struct RelayNewsTests {
  @Test func `queued events have a limit; an end is accepted all the same, once`() throws {
    let thread = try #require(MediaThread(AudioHandle()) { _ in })
    let call = Identifier(high: 1, low: 1)
    func give(_ event: RelayEvent, _ connection: Int = 16) -> Bool {
      thread.give(.init(call: call, connection: connection, event: event))
    }
    let taken = (0..<2_000).count { _ in give(.received([1])) }
    #expect(taken == MediaLimits.relayEvents)
    for _ in 0..<1_000 { #expect(give(.closed("too much waits"))) }
    #expect(give(.closed("too much waits"), 17))
    #expect(thread.drainRelayNews().count == MediaLimits.relayEvents + 2)
    #expect(give(.received([1])) && thread.drainRelayNews().count == 1)
  }
}

#if os(Linux)
  @Suite struct ThreadNameTests {
    @Test func `a thread of the SDK is known by its name from its first statement on`() async {
      let name = await withCheckedContinuation { continuation in
        namedThread("trunkline-media") {
          continuation.resume(returning: try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8))
        }.start()
      }
      #expect(name == "trunkline-media\n")
    }
  }
#endif

@Suite struct RejectAddressTests {
  @Test(arguments: [
    ("wss://g.example/v1/connect", "https://g.example/v1/calls/7/reject"), ("ws://g:8080", "http://g:8080/v1/calls/7/reject"),
    ("wss://g.example/any?x=1", "https://g.example/v1/calls/7/reject"),
    ("wss://g.example/n/n1/v1/connect", "https://g.example/n/n1/v1/calls/7/reject"),
  ])
  func `a reject goes beside the socket's path`(_ gateway: String, _ expected: String) {
    #expect(PhoneEngine.httpAddress(of: gateway, path: "/calls/7/reject") == expected)
  }
}

@Suite struct PushPayloadTests {
  private static let call = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"

  @Test func `a payload of APNs, one of FCM, and one in an envelope`() throws {
    let apns =
      #"{"aps":{},"v":1,"t":"call","call":"\#(Self.call)","exp":1700000000,"from":{"k":"phone","h":"+1","n":"Jane"},"gw":"wss://g","wake":"w"}"#
    let fcm =
      #"{"call":"\#(Self.call)","exp":"1700000000","from_k":"phone","from_h":"+1","from_n":"Jane","gw":"wss://g","wake":"w"}"#
    for text in [apns, fcm, #"{"service":"apns","payload":\#(apns)}"#] {
      let push = try #require(PushPayload(json: Array(text.utf8)))
      #expect(push.caller == Handle(k: .phone, h: "+1", n: "Jane") && push.gateway == "wss://g" && push.expires == 1_700_000_000)
    }
  }

  @Test func `without a caller it is Unknown; without a call or a wake token there is no payload`() throws {
    let bare = try #require(PushPayload(json: Array(#"{"call":"\#(Self.call)","wake":"w"}"#.utf8)))
    #expect(bare.caller.h == "Unknown" && bare.gateway == nil && bare.isAnonymous)
    for text in ["", "[]", "{}", "null", #"{"call":"\#(Self.call)"}"#, #"{"call":"x","wake":"w"}"#, #"{"call":1,"wake":[]}"#] {
      #expect(PushPayload(json: Array(text.utf8)) == nil, "\(text)")
    }
  }

  @Test func `E2E-2: a sealed caller is read with the key, for its call only`() throws {
    let secrets = MemorySecrets()
    let key = try #require(SealedCaller.key(in: secrets, .seeded(6)))
    #expect(SealedCaller.key(in: secrets, .seeded(7)) == key && SealedCaller.publicText(of: key)?.count == 43)
    let call = try #require(Identifier(Self.call))
    let json = Array(#"{"k":"phone","h":"+1","n":"Jane"}      "#.utf8)
    let publicKey = try #require(HPKE.publicKey(of: key))
    let sealed = try #require(
      HPKE.seal(json, for: publicKey, info: Array("trunkline caller v1".utf8), authenticating: Array(Self.call.utf8), scalar: key)
    )
    let text = Data(sealed).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    #expect(SealedCaller.open(text, call: call, key: key) == Handle(k: .phone, h: "+1", n: "Jane"))
    #expect(SealedCaller.open(text, call: Identifier(high: 1, low: 2), key: key) == nil)
    #expect(SealedCaller.open(text + "A", call: call, key: key) == nil && SealedCaller.open("", call: call, key: key) == nil)
  }

  @Test func `any bytes are survived`() {
    let random = RandomSource.seeded(5)
    let sample = Array(#"{"call":"\#(Self.call)","wake":"w","from":{"h":"+1"},"exp":1}"#.utf8)
    for _ in 0..<10_000 {
      var bytes = sample
      for _ in 0..<3 { bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next()) }
      _ = PushPayload(json: bytes.prefix(Int(random.next() % UInt64(bytes.count + 1))))
      _ = PushPayload(json: random.bytes(Int(random.next() % 200)))
    }
  }
}

@Suite struct SecretStoreTests {
  @Test func `ACC-2: files are for their owner only, outlive the store, and are deleted; nothing is in UserDefaults`() throws {
    let folder = NSTemporaryDirectory() + "secrets-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(FileSecrets(folder: folder).write("device-id", [1, 2]))
    #expect(FileSecrets(folder: folder).read("device-id") == [1, 2])
    let mode = try FileManager.default.attributesOfItem(atPath: folder + "/device-id")[.posixPermissions] as? Int
    #expect(mode == 0o600)
    #expect(FileSecrets(folder: folder).write("device-id", nil))
    #expect(FileSecrets(folder: folder).read("device-id") == nil)
  }

  @Test func `a key is no path`() {
    let folder = NSTemporaryDirectory() + "secrets-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(FileSecrets(folder: folder).write("../outside", [1]))
    #expect(
      !FileManager.default.fileExists(atPath: folder + "/../outside") && FileSecrets(folder: folder).read("../outside") == [1])
  }
}

@Suite struct QuickStartTests {
  private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  @Test(arguments: [
    ("README.md", "PhoneScreen.swift", 15),
    ("Sources/Client/TrunklineCallKit/TrunklineCallKit.docc/GettingStarted.md", "PhoneApp.swift", 35),
  ])
  func `a page's app is the file that the suite compiles, in few lines`(page: String, file: String, lines: Int) throws {
    let app = try text("Tests/QuickStart/App/\(file)").components(separatedBy: "\n").drop { $0.hasPrefix("//") || $0.isEmpty }
    let code = app.joined(separator: "\n").trimmingCharacters(in: .newlines)
    #expect(try text(page).contains("```swift\n" + code + "\n```"))
    #expect(app.filter { !$0.isEmpty }.count <= lines)
  }

  @Test func `the README has 900 words at most`() throws {
    #expect(try text("README.md").split(whereSeparator: \.isWhitespace).count <= 900)
  }

  @Test func `what of SwiftUI the quick start needs is small`() throws {
    #expect(try text("Tests/QuickStart/SwiftUI/SwiftUI.swift").components(separatedBy: "\n").count <= 200)
  }
}

@Suite struct EndReasonTests {
  @Test func `each reason has the text and the reason for the screen that the vectors state`() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("Vectors/client/texts.txt")
    let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
    #expect(rows.count == EndReason.allCases.count)
    for row in rows {
      let words = row.split(separator: " ", maxSplits: 2).map(String.init)
      let reason = try #require(EndReason(rawValue: words[0]))
      #expect(reason.callEndedReason?.rawValue ?? "-" == words[1] && reason.text == words[2], "\(row)")
    }
  }
}
