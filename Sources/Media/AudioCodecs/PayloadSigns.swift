/// What a payload says besides what it sounds like, for `SuddenSound`: eight values, meaningless among codecs. Asked only where audio gets
/// louder: it reads the payload's first bits (CELT) or all of its octets (G.722).
struct PayloadSigns {
  private(set) var values: InlineArray<8, Float> = .init(repeating: 0)

  init(_ payload: Span<UInt8>, _ source: SoundSource) {
    switch source {
    case .celt: celt(payload)
    case .hybrid, .silk: values[0] = OpusPacket.mayHaveVoice(payload) ? 1 : 0
    case .g722: g722(payload)
    case .g711, .madeUp: break
    }
  }

  /// Flags, and by how much the bands are said to be louder: low ones, high ones, the most of all, and how unlike they are. A packet
  /// of another form has the values of an ordinary one.
  private mutating func celt(_ packet: Span<UInt8>) {
    guard let header = CELTHeader(packet) else { return }
    values[0] = header.standsAlone ? 1 : 0
    values[1] = header.isTransient ? 1 : 0
    values[2] = header.hasPitch ? 1 : 0
    var (low, high, most, squares): (Float, Float, Float, Float) = (0, 0, 0, 0)
    for band in 0..<header.bands {
      let level = Float(header.levels[band])
      if band < 13 { low += level } else { high += level }
      most = max(most, level)
      squares += level * level
    }
    values[3] = low / 13
    values[4] = high / 8
    values[5] = most
    values[6] = (squares / Float(header.bands)).squareRoot()
    values[7] = Float(header.levels[0])
  }

  /// Codes of the low band: how likely they are in all and in the worst quarter, how the scale moves, codes that no encoder sends, and
  /// large differences between small ones, as turned bits make them. Of the high band nothing: encoders differ in what they make of
  /// silence there, and it is not heard.
  private mutating func g722(_ octets: Span<UInt8>) {
    guard octets.count >= 20 else { return }
    let quarter = octets.count / 4
    var (evidence, part, worst): (Int32, Int32, Int32) = (0, 0, .max)
    var (scale, forbidden): (Int32, Int32) = (0, 0)
    var (lonely, loneliest, first): (Int32, Int32, Int32) = (0, 0, 0)
    var (before, own): (Int32, Int32) = (0, abs(G722Tables.qm4[Int(octets[0] & 0x3f) >> 2]))
    for index in 0..<octets.count {
      let code = Int(octets[index] & 0x3f) >> 2
      let next = index + 1 < octets.count ? abs(G722Tables.qm4[Int(octets[index + 1] & 0x3f) >> 2]) : own
      evidence &+= G722Tables.evidence[code]
      part &+= G722Tables.evidence[code]
      if index % quarter == quarter - 1 { (worst, part) = (min(worst, part), 0) }
      scale &+= G722Tables.lowSteps[code]
      if index < quarter { first = scale }
      if octets[index] & 0x3f < 4 { forbidden &+= 1 }
      let alone = max(0, own &- 2 &* max(before, next))
      lonely &+= alone
      loneliest = max(loneliest, alone)
      (before, own) = (own, next)
    }
    let count = Float(octets.count)
    values[0] = Float(evidence) / count / 100
    values[1] = Float(worst) / Float(quarter) / 100
    values[2] = Float(scale) / 2048
    values[3] = Float(min(4, forbidden))
    values[5] = Float(lonely) / count / 1000
    values[6] = Float(loneliest) / 4096
    values[7] = Float(first) / 2048
  }
}
