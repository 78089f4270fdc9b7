import CallFlow

/// Call records and start lines as JSON, with the octets that `JSONEncoder` would write with sorted keys and plain slashes: at two
/// thousand calls a second its boxes took half of the store's time. `RecordTextTests` holds both to each other, and counts the fields.
struct RecordText {
  private(set) var bytes: [UInt8] = []
  /// The next key or element is not the first.
  private var hasPrevious = false

  /// A record and its line end.
  mutating func append(_ record: CallRecord) {
    object { text in
      text.field("call", record.call.description)
      text.key("codecs")
      text.object { text in
        text.field("app", record.codecs.app)
        text.field("trunk", record.codecs.trunk)
      }
      text.field("connectedMs", record.connectedMs)
      text.field("device", record.device)
      text.field("devices", record.devices)
      text.field("direction", record.direction.rawValue)
      if let diversions = record.diversions {
        text.key("diversions")
        text.list(diversions) { $0.write($1) }
      }
      text.key("end")
      text.write(record.end)
      text.field("from", record.from)
      text.stream("fromApp", record.fromApp)
      text.stream("fromTrunk", record.fromTrunk)
      text.field("sipCallId", record.sipCallId)
      text.field("srtp", record.srtp)
      text.key("times")
      text.object { text in for (stage, time) in record.times.sorted(by: { $0.key < $1.key }) { text.field(stage, time) } }
      text.field("to", record.to)
      text.field("trunk", record.trunk)
      text.field("trunkSrtp", record.trunkSrtp)
      text.field("user", record.user)
    }
    bytes.append(UInt8(ascii: "\n"))
    hasPrevious = false
  }

  mutating func append(_ line: StartLine) {
    object { text in
      text.field("call", line.call.description)
      text.field("connect", line.connect)
      text.field("direction", line.direction.rawValue)
      text.field("from", line.from)
      text.field("sipCallId", line.sipCallId)
      text.field("start", line.start)
      text.field("to", line.to)
      text.field("trunk", line.trunk)
      text.field("user", line.user)
    }
  }

  private mutating func write(_ end: CallRecord.End) {
    object { text in
      text.field("by", end.by.rawValue)
      text.field("detail", end.detail)
      text.field("reason", end.reason.rawValue)
      text.field("sip", end.sip)
    }
  }

  private mutating func write(_ diversion: CallRecord.Diversion) {
    object { text in
      text.field("code", diversion.code)
      text.field("number", diversion.number)
      text.field("recording", diversion.recording)
      text.field("sipCallId", diversion.sipCallId)
      text.field("trunk", diversion.trunk)
      text.field("user", diversion.user)
      text.field("why", diversion.why.rawValue)
    }
  }

  private mutating func stream(_ name: StaticString, _ stream: CallRecord.Stream?) {
    guard let stream else { return }
    key(name)
    object { text in
      text.field("bufferMs", stream.bufferMs)
      if let bursts = stream.bursts {
        text.key("bursts")
        text.write(bursts)
      }
      text.field("concealedMs", stream.concealedMs)
      text.field("dropped", stream.dropped)
      text.field("jitterMs", stream.jitterMs)
      text.field("late", stream.late)
      text.field("levelDb", stream.levelDb)
      text.field("loss", stream.loss)
      text.field("lost", stream.lost)
      text.field("mos", stream.mos)
      text.field("noiseDb", stream.noiseDb)
      text.field("packets", stream.packets)
      text.field("repairedMs", stream.repairedMs)
      text.field("rttMs", stream.rttMs)
      text.field("sent", stream.sent)
    }
  }

  private mutating func write(_ bursts: CallRecord.Bursts) {
    object { text in
      text.field("density", bursts.density)
      text.field("gapDensity", bursts.gapDensity)
      text.field("gapMs", bursts.gapMs)
      text.field("ms", bursts.ms)
      text.field("ratio", bursts.ratio)
    }
  }
}

// JSON (RFC 8259).
extension RecordText {
  private mutating func object(_ body: (inout RecordText) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    hasPrevious = false
    body(&self)
    bytes.append(UInt8(ascii: "}"))
    hasPrevious = true
  }

  private mutating func list<Element>(_ elements: [Element], _ body: (inout RecordText, Element) -> Void) {
    bytes.append(UInt8(ascii: "["))
    for (index, element) in elements.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      body(&self, element)
    }
    bytes.append(UInt8(ascii: "]"))
    hasPrevious = true
  }

  private mutating func key(_ name: StaticString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
  }

  private mutating func separate() {
    if hasPrevious { bytes.append(UInt8(ascii: ",")) }
    hasPrevious = true
  }

  private mutating func field(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    key(name)
    string(value)
  }

  private mutating func field(_ name: StaticString, _ value: (some FixedWidthInteger)?) {
    guard let value else { return }
    key(name)
    bytes.append(contentsOf: String(value).utf8)
  }

  private mutating func field(_ name: StaticString, _ value: Double?) {
    guard let value else { return }
    key(name)
    guard value.isFinite else { return string(value.isNaN ? "nan" : value < 0 ? "-inf" : "inf") }
    let text = value.description
    bytes.append(contentsOf: text.hasSuffix(".0") ? text.utf8.dropLast(2) : text.utf8[...])
  }

  private mutating func field(_ name: String, _ value: Int64) {
    separate()
    string(name)
    bytes.append(UInt8(ascii: ":"))
    bytes.append(contentsOf: String(value).utf8)
  }

  private mutating func string(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0x08: bytes += "\\b".utf8
      case 0x09: bytes += "\\t".utf8
      case 0x0a: bytes += "\\n".utf8
      case 0x0c: bytes += "\\f".utf8
      case 0x0d: bytes += "\\r".utf8
      case 0..<0x20:
        let digits = Array("0123456789abcdef".utf8)
        bytes += "\\u00".utf8
        bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}
