import Foundation
import Testing

extension Interop {
  /// HD voice with foreign stacks: tones below and above 4 kHz between carriers and apps on aiortc, Chromium and our SDK.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.baresip != nil),
      "no baresip: run Scripts/install test"), .serialized)
  struct WidebandEarsTests {
    /// The tones that both sides play, for 8 s.
    private static let low: [Double] = [500, 1_500]
    private static let high: [Double] = [4_600, 5_500]
    private static let amplitude = 2_500.0
    private static let rate = 16_000
    private static let said = tones(low + high, rate)
    private static func tones(_ hertz: [Double], _ rate: Int) -> [Int16] {
      (0..<8 * rate).map { index -> Int16 in
        let time = Double(index) / Double(rate)
        return Int16(hertz.reduce(0) { $0 + amplitude * sin(2 * .pi * $1 * time) })
      }
    }

    /// Decibels of both parts against what was played, over the fifths of a second in which anything is heard: the mean of the
    /// better half without the best tenth, since a moment of another program's lateness costs a window its level.
    private static func levels(_ path: String, rate: Int = rate) throws -> (low: Double, high: Double) {
      let samples = try Speech.read(path)
      var parts: [(low: Double, high: Double)] = []
      for start in stride(from: 0, to: samples.count - rate / 5, by: rate / 5) {
        let window = samples[start..<start + rate / 5]
        func power(_ hertz: [Double]) -> Double { hertz.reduce(0) { $0 + Self.power(window, $1, rate) } / Double(hertz.count) }
        let part = (low: power(low), high: power(high))
        if part.low > amplitude * amplitude / 36 { parts.append(part) }
      }
      guard parts.count >= 20 else {
        throw Spawned.Failure(description: "\(path): only \(parts.count) fifths of a second are heard")
      }
      func level(_ powers: [Double]) -> Double {
        let sorted = powers.sorted()
        let middle = sorted[sorted.count / 2..<sorted.count * 9 / 10]
        return 10 * log10(max(1e-3, middle.reduce(0, +) / Double(middle.count)) / (amplitude * amplitude))
      }
      return (level(parts.map(\.low)), level(parts.map(\.high)))
    }

    /// The square of the amplitude of one frequency.
    private static func power(_ samples: ArraySlice<Int16>, _ hertz: Double, _ rate: Int) -> Double {
      var (re, im) = (0.0, 0.0)
      for (index, sample) in samples.enumerated() {
        let turn = 2 * .pi * hertz * Double(index) / Double(rate)
        re += Double(sample) * cos(turn)
        im += Double(sample) * sin(turn)
      }
      return 4 * (re * re + im * im) / Double(samples.count * samples.count)
    }

    private enum App { case aiortc, chromium, swift }

    /// A call from baresip with this codec: what the app heard, and the file of what baresip heard.
    private func call(_ codec: String, _ settings: String, _ app: App = .aiortc) async throws -> (
      app: (low: Double, high: Double), carrier: String, band: String?
    ) {
      let gateway = try await GatewayUnderTest(trunk: settings, media: app == .chromium ? "[ auto ]" : "[ 127.0.0.1 ]")
      try Speech.write(Self.said, gateway.folder + "/app.wav", rate: Self.rate)
      let words = ["--rate", "\(Self.rate)", "--play", "app.wav", "--record", "app-heard.wav"]
      let phone =
        switch app {
        case .aiortc:
          try await Peers.phone(gateway, words + ["--answer-after", "0.2", "--end-after", "9", "--calls", "1"])
        case .chromium: try await Peers.browser(gateway, words + ["--answer", "--loop", "--hangup-after", "9"])
        case .swift:
          try await Peers.ownPhone(gateway, words + ["--answer", "--answer-after", "0.2", "--talk", "9", "--calls", "1"])
        }
      let (rate, spoken) =
        switch codec {
        case "PCMU": (8_000, Self.tones(Self.low, 8_000))
        // baresip codes Opus at 48 kHz only.
        case "opus": (48_000, Self.tones(Self.low + Self.high, 48_000))
        default: (Self.rate, Self.said)
        }
      let carrier = try Baresip(
        gateway, user: "+15557770001", codec: codec, says: spoken, rate: rate,
        ["-e", "/dial sip:+15551230001@127.0.0.1:\(gateway.sip)"])
      try await carrier.expectReady()
      #expect(try await phone.finish(within: 40) == 0, "\(phone.text)\n\(carrier.text)")
      try await carrier.quit()
      let record = try #require(try await gateway.records(1).first)
      let codecs = try #require(record["codecs"] as? [String: Any])
      #expect((codecs["trunk"] as? String)?.lowercased() == codec.lowercased())
      let heard = try Self.levels(gateway.folder + "/app-heard.wav")
      let file = FileManager.default.temporaryDirectory.appendingPathComponent("heard-\(UUID().uuidString).wav").path
      try FileManager.default.copyItem(atPath: try carrier.heard(), toPath: file)
      try await gateway.finish()
      return (heard, file, record["band"] as? String)
    }

    /// - Parameter gain: the speaker's own, in decibels.
    private func expectBothBands(_ who: String, _ heard: (low: Double, high: Double), gain: Double = 0) {
      #expect(abs(heard.low - gain) < 1 && abs(heard.high - gain) < 1, "the \(who) hears \(heard) dB")
    }

    @Test func `baresip by G.722 and aiortc: what is between 4 and 7 kHz arrives both ways`() async throws {
      let call = try await call("G722", "codecs: [ G722, PCMU ]")
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      expectBothBands("app", call.app)
      // aiortc makes two channels of one, each 3 dB weaker.
      expectBothBands("carrier", try Self.levels(call.carrier), gain: -3)
      #expect(call.band == "wide")
    }

    @Test(.enabled(if: Surroundings.isRequired || Surroundings.chromium != nil))
    func `baresip by G.722 and Chromium: what is between 4 and 7 kHz arrives both ways`() async throws {
      let call = try await call("G722", "codecs: [ PCMU, G722 ], prefer: wide", .chromium)
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      expectBothBands("page", call.app)
      expectBothBands("carrier", try Self.levels(call.carrier))
      #expect(call.band == "wide")
    }

    @Test func `baresip by G.722 and the Swift client: what is between 4 and 7 kHz arrives both ways`() async throws {
      let call = try await call("G722", "codecs: [ G722, PCMU ]", .swift)
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      expectBothBands("app", call.app)
      expectBothBands("carrier", try Self.levels(call.carrier))
      #expect(call.band == "wide")
    }

    @Test func `baresip by Opus and the Swift client: what is between 4 and 7 kHz arrives both ways`() async throws {
      let call = try await call("opus", "codecs: [ opus, PCMU ]", .swift)
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      expectBothBands("app", call.app)
      expectBothBands("carrier", try Self.levels(call.carrier, rate: 48_000))
    }

    @Test func `baresip by PCMU and the Swift client: nothing is heard above 4 kHz, and all below arrives`() async throws {
      let call = try await call("PCMU", "codecs: [ PCMU, G722 ], prefer: cheap", .swift)
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      #expect(abs(call.app.low) < 1 && call.app.high < -35, "\(call.app)")
      #expect(abs(try Self.levels(call.carrier, rate: 8_000).low) < 1)
      #expect(call.band == "narrow")
    }

    @Test func `baresip by PCMU: nothing is heard above 4 kHz`() async throws {
      let call = try await call("PCMU", "codecs: [ PCMU, G722 ], prefer: cheap")
      defer { try? FileManager.default.removeItem(atPath: call.carrier) }
      #expect(call.app.high < -35, "\(call.app)")
      #expect(call.band == "narrow")
    }

    @Test func `a re-INVITE to PCMU makes the call narrow at once, and one back to G.722 wide again`() async throws {
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ G722, PCMU ]")
      for file in ["app", "carrier"] { try Speech.write(Self.said + Self.said, gateway.folder + "/\(file).wav", rate: Self.rate) }
      let phone = try await Peers.phone(
        gateway,
        [
          "--rate", "\(Self.rate)", "--play", "app.wav", "--record", "app-heard.wav", "--answer-after", "0.2", "--calls", "1",
        ])
      let audio = try await Peers.trunkAudio(
        gateway, ["--rate", "\(Self.rate)", "--codec", "9", "--play", "carrier.wav", "--then", "4:0,8:9"])
      var script = SippScript.caller(sdp: SippScript.sdp("9 0 101"))
      script.isAnswered(containing: ["m=audio [0-9]+ RTP/AVP 9"])
      for (version, codec) in [(2, "0"), (3, "9")] {
        script.pauses(4_000)
        script.asks("INVITE", sdp: SippScript.sdp("\(codec) 101", version: version))
        script.response(200, containing: ["m=audio [0-9]+ RTP/AVP \(codec) 101"])
      }
      script.pauses(4_000)
      script.asks("BYE")
      script.response()
      let caller = try Peers.caller(gateway, try script.file(gateway, "bands"), audio: audio.port)
      #expect(try await caller.finish(within: 40) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
      #expect(try await audio.peer.finish(within: 10) == 0)

      // what the carrier heard: two thirds G.722, one third PCMU
      let types = try #require(audio.peer.events.last?["types"] as? [String: Int])
      #expect(types["9"] ?? 0 > 300 && types["0"] ?? 0 > 150 && types.count == 2, "\(types)")
      // what the app heard, in fifths of seconds
      let samples = try Speech.read(gateway.folder + "/app-heard.wav")
      var bands: [Bool] = []
      for start in stride(from: 0, to: samples.count - Self.rate / 5, by: Self.rate / 5) {
        let window = samples[start..<start + Self.rate / 5]
        func level(_ hertz: [Double]) -> Double {
          10
            * log10(
              max(1e-3, hertz.reduce(0) { $0 + Self.power(window, $1, Self.rate) } / Double(hertz.count)) / pow(Self.amplitude, 2)
            )
        }
        guard abs(level(Self.low)) < 3 else { continue }
        let high = level(Self.high)
        if abs(high) < 3 { bands.append(true) } else if high < -30 { bands.append(false) }
      }
      let turns = zip(bands, bands.dropFirst()).count { $0 != $1 }
      #expect(turns == 2 && bands.first == true && bands.last == true, "\(bands)")
      #expect(bands.count { $0 } >= 25 && bands.count { !$0 } >= 13, "\(bands)")
      try await gateway.finish()
    }

    @Test(.enabled(if: Surroundings.isRequired || Surroundings.linphone != nil))
    func `linphone by G.722 and aiortc: what is between 4 and 7 kHz arrives both ways`() async throws {
      let port = try FreePorts.both()
      let gateway = try await GatewayUnderTest(trunk: "codecs: [ G722, PCMU ], rtp_source: symmetric", carrier: port)
      try Speech.write(Self.said, gateway.folder + "/app.wav", rate: Self.rate)
      let linphone = try await Linphone(gateway, port: port, codecs: ["G722", "PCMU"], says: Self.said, rate: Self.rate)
      let phone = try await Peers.phone(
        gateway,
        [
          "--rate", "\(Self.rate)", "--play", "app.wav", "--record", "app-heard.wav", "--call", "+15559990001", "--end-after",
          "9",
          "--calls", "1",
        ])
      #expect(try await phone.finish(within: 40) == 0, "\(phone.text)\n\(linphone.text.suffix(3_000))")
      try await linphone.quit()
      // linphone adds its own gain to its files.
      for (who, file) in [("app", gateway.folder + "/app-heard.wav"), ("carrier", linphone.folder + "/heard.wav")] {
        let heard = try Self.levels(file)
        #expect(abs(heard.high - heard.low) < 1, "the \(who) hears \(heard) dB")
      }
      try await gateway.finish()
    }
  }
}
