/// Two spoken sentences, G.711 µ-law at 8 kHz, for the demo call, `trunk` and `phone` without a WAV file, and tests.
/// Made with eSpeak NG from texts of this project; about 8 s each, decoded at the first use.
public enum DemoSpeech {
  /// What the telephone side says.
  public static let telephone: [UInt8] = decoded(EncodedSpeech.telephone)
  /// What the app answers.
  public static let app: [UInt8] = decoded(EncodedSpeech.app)

  /// RFC 4648 §4 of our own literal; anything that is not in the alphabet is skipped.
  private static func decoded(_ text: StaticString) -> [UInt8] {
    var out: [UInt8] = []
    var (bits, count): (UInt32, Int) = (0, 0)
    text.withUTF8Buffer { letters in
      out.reserveCapacity(letters.count * 3 / 4)
      for letter in letters {
        guard let value = sextet(letter) else { continue }
        bits = bits << 6 | value
        count += 6
        if count >= 8 {
          count -= 8
          out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
      }
    }
    return out
  }

  private static func sextet(_ letter: UInt8) -> UInt32? {
    switch letter {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(letter) - 65
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(letter) - 71
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(letter) + 4
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
