import BenchKit
import CBenchNet
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

/// rtpengine from Debian as a process of ours: in user space, on loopback ports, bound to one core, ended by its pid.
final class RTPEngine {
  private let pid: Int32
  private let control: Int32
  private let port: UInt16
  private var cookie = 0

  static let path = "/usr/bin/rtpengine"
  static var isInstalled: Bool { bn_exists(path) != 0 }

  init(_ cores: Cores) throws {
    var own: UInt16 = 0
    control = bn_udp(&own)
    port = try FreePorts.loopback(1)[0]
    let arguments = [
      Self.path, "--foreground", "--table=-1", "--interface=127.0.0.1", "--listen-ng=127.0.0.1:\(port)", "--port-min=33000",
      "--port-max=59998", "--num-threads=1", "--log-level=2", "--log-stderr", "--delete-delay=0", "--no-redis-required",
    ]
    let strings = arguments.map { Array($0.utf8CString) }
    var pointers: [UnsafePointer<CChar>?] = []
    var copies: [UnsafeMutablePointer<CChar>] = []
    for string in strings {
      let copy = UnsafeMutablePointer<CChar>.allocate(capacity: string.count)
      copy.initialize(from: string, count: string.count)
      copies.append(copy)
      pointers.append(UnsafePointer(copy))
    }
    pointers.append(nil)
    pid = bn_spawn(&pointers, cores.measured ?? -1)
    for copy in copies { copy.deallocate() }
    guard pid > 0 else { throw BenchError(text: "rtpengine could not be started") }
    for _ in 0..<50 { if (try? ask(["command": "ping"])) != nil { return } }
    bn_end(pid)
    throw BenchError(text: "rtpengine does not answer on its control port")
  }

  deinit {
    bn_end(pid)
    bn_close(control)
  }

  var cpuSeconds: Double { Double(bn_process_cpu(pid)) / 1e9 }

  /// Connects a call: the carrier offers its codec over RTP, the app gets SRTP with SDES keys and answers.
  func connect(_ pair: CallPair, _ number: Int, transcodes: Bool) throws {
    let row = pair.trunkEncoding.row
    let carrier = Self.description(pair.trunkPort, "RTP/AVP", ["\(row.payloadType) \(row.rtpmap)"])
    var offer: [String: Any] = [
      "command": "offer", "call-id": "bench\(number)", "from-tag": "a\(number)", "sdp": carrier, "transport-protocol": "RTP/SAVP",
      "ICE": "remove", "replace": ["origin"], "SDES": ["only-AEAD_AES_128_GCM"],
    ]
    if transcodes { offer["codec"] = ["transcode": ["opus"], "mask": [row.name]] as [String: [String]] }
    let toApp = try ask(offer)
    let media = try Self.lines(toApp, number)
    pair.appRemote = media.port
    guard let crypto = media.crypto else { throw BenchError(text: "rtpengine offers no AEAD_AES_128_GCM: \(toApp)") }
    pair.appPayloadType = transcodes ? media.payloadTypes.first { $0 != row.payloadType } ?? 96 : 0
    let own = (0..<28).map { UInt8(truncatingIfNeeded: $0 * 7 + number) }
    let coding = transcodes ? "\(pair.appPayloadType) opus/48000/2" : "0 PCMU/8000"
    let app =
      Self.description(pair.appPort, "RTP/SAVP", [coding])
      + "a=crypto:\(crypto.tag) AEAD_AES_128_GCM inline:\(base64(own))\r\n"
    let toCarrier = try ask([
      "command": "answer", "call-id": "bench\(number)", "from-tag": "a\(number)", "to-tag": "b\(number)", "sdp": app,
      "ICE": "remove", "replace": ["origin"], "transport-protocol": "RTP/AVP",
    ])
    pair.trunkRemote = try Self.lines(toCarrier, number).port
    pair.sender = try SRTPSender(.aeadAES128GCM, Self.master(own))
    pair.receiver = try SRTPReceiver(.aeadAES128GCM, Self.master(crypto.key))
  }

  private static func master(_ octets: [UInt8]) -> SRTPMasterKey {
    SRTPMasterKey(key: Array(octets[..<16]), salt: Array(octets[16..<28]))
  }

  private static func description(_ port: UInt16, _ transport: String, _ codings: [String]) -> String {
    let types = codings.map { String($0.split(separator: " ")[0]) }.joined(separator: " ")
    return "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio \(port) \(transport) \(types)\r\n"
      + codings.map { "a=rtpmap:\($0)\r\n" }.joined() + "a=sendrecv\r\na=ptime:20\r\n"
  }

  private struct Media {
    var port: UInt16 = 0
    var payloadTypes: [UInt8] = []
    var crypto: (tag: String, key: [UInt8])?
  }

  private static func lines(_ sdp: String, _ number: Int) throws -> Media {
    var media = Media()
    for line in sdp.split(whereSeparator: \.isNewline) {
      let words = line.split(separator: " ")
      if line.hasPrefix("m=audio "), words.count > 3 {
        media.port = UInt16(words[1]) ?? 0
        media.payloadTypes = words[3...].compactMap { UInt8($0) }
      }
      if line.hasPrefix("a=crypto:"), words.count > 2, words[1] == "AEAD_AES_128_GCM", media.crypto == nil {
        let text = words[2].dropFirst("inline:".count).prefix { $0 != "|" }
        guard let key = unbase64(String(text)), key.count == 28 else { continue }
        media.crypto = (String(words[0].dropFirst("a=crypto:".count)), key)
      }
    }
    guard media.port > 0 else { throw BenchError(text: "rtpengine gave call \(number) no port: \(sdp)") }
    return media
  }

  // MARK: the ng protocol: a cookie and a bencoded dictionary in one datagram each way

  /// The `sdp` of the answer, or its `result`.
  private func ask(_ request: [String: Any]) throws -> String {
    cookie += 1
    let bytes = Array("c\(cookie) ".utf8) + Self.bencode(request)
    _ = bytes.withUnsafeBytes { bn_send(control, $0.baseAddress, $0.count, port) }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 8_192, alignment: 8)
    defer { room.deallocate() }
    let end = bn_monotonic() + 1_000_000_000
    while bn_monotonic() < end {
      var stamp: Int64 = 0
      var from: UInt16 = 0
      let count = bn_receive(control, room.baseAddress, room.count, &stamp, &from)
      guard count > 0 else {
        bn_pause(100_000)
        if bn_monotonic() > end - 900_000_000, request["command"] as? String == "ping" { break }
        continue
      }
      let text = Array(room[..<count])
      guard text.starts(with: Array("c\(cookie) ".utf8)) else { continue }
      if let sdp = Self.value("sdp", text) { return sdp }
      guard let result = Self.value("result", text), result != "error" else {
        throw BenchError(text: "rtpengine: \(String(decoding: text, as: UTF8.self))")
      }
      return result
    }
    throw BenchError(text: "rtpengine does not answer")
  }

  private static func bencode(_ value: Any) -> [UInt8] {
    switch value {
    case let text as String: Array("\(text.utf8.count):".utf8) + Array(text.utf8)
    case let list as [String]: [UInt8(ascii: "l")] + list.flatMap { bencode($0) } + [UInt8(ascii: "e")]
    case let table as [String: Any]:
      [UInt8(ascii: "d")] + table.keys.sorted().flatMap { bencode($0) + bencode(table[$0] ?? "") } + [UInt8(ascii: "e")]
    default: []
    }
  }

  /// The string after a key; enough of a parser for answers that hold nothing nested before it.
  private static func value(_ key: String, _ text: [UInt8]) -> String? {
    let pattern = Array("\(key.utf8.count):\(key)".utf8)
    guard text.count > pattern.count else { return nil }
    for start in 0..<(text.count - pattern.count) where Array(text[start..<start + pattern.count]) == pattern {
      var index = start + pattern.count
      var length = 0
      while index < text.count, let digit = UInt8(exactly: text[index]), (48...57).contains(digit) {
        length = length * 10 + Int(digit) - 48
        index += 1
      }
      guard index < text.count, text[index] == UInt8(ascii: ":"), index + 1 + length <= text.count else { continue }
      return String(decoding: text[(index + 1)..<(index + 1 + length)], as: UTF8.self)
    }
    return nil
  }
}

private let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

private func base64(_ bytes: [UInt8]) -> String {
  var out: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    let word = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
    for index in 0..<4 { out.append(index <= group.count ? digits[Int(word >> UInt32(18 - 6 * index) & 63)] : UInt8(ascii: "=")) }
  }
  return String(decoding: out, as: UTF8.self)
}

private func unbase64(_ text: String) -> [UInt8]? {
  var (bits, count): (UInt32, Int) = (0, 0)
  var out: [UInt8] = []
  for octet in text.utf8 where octet != UInt8(ascii: "=") {
    guard let digit = digits.firstIndex(of: octet) else { return nil }
    (bits, count) = (bits << 6 | UInt32(digit), count + 6)
    if count >= 8 {
      count -= 8
      out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
    }
  }
  return out
}

/// rtpengine with the same generator, the same calls; nil where it is not installed.
enum Theirs {
  static func measure(_ bench: Bench, _ cores: Cores, _ calls: Int, transcodes: Bool, _ material: CallMaterial) throws
    -> Measured?
  {
    guard RTPEngine.isInstalled else {
      bench.progress("rtpengine is not installed: its column is left out")
      return nil
    }
    bench.progress("rtpengine: \(calls) calls, \(transcodes ? "transcoded" : "relayed")")
    let engine = try RTPEngine(cores)
    if let cpu = cores.generator { _ = bn_pin(0, cpu) }
    let pairs = try (0..<calls).map { try CallPair($0, trunk: material.trunkEncoding) }
    for (number, pair) in pairs.enumerated() { try engine.connect(pair, number, transcodes: transcodes) }
    let seconds = bench.isSmall ? 0.3 : 4.0
    var used = (0.0, 0.0)
    let generator = CallGenerator(calls: pairs, material: material)
    let figures = try generator.run(
      seconds: seconds, settle: bench.isSmall ? 0.2 : 1, atStart: { used.0 = engine.cpuSeconds },
      atEnd: { used.1 = engine.cpuSeconds })
    let measured = Measured(figures: figures, callsPerCore: Double(calls) * seconds / max(1e-9, used.1 - used.0))
    bench.progress("rtpengine: \(measured.note)")
    return measured
  }
}
