import CDemoSpeech

/// Two spoken sentences, G.711 µ-law at 8 kHz, for the demo call, `trunk` and `phone` without a WAV file, and tests.
/// Made with eSpeak NG from texts of this project; about 8 s each.
public enum DemoSpeech {
  /// The sentence of the telephone side.
  public static let telephone = octets(cdemo_telephone)
  /// The app's answer.
  public static let app = octets(cdemo_app)

  private static func octets(_ speech: CDemoSpeech) -> [UInt8] {
    [UInt8](UnsafeBufferPointer(start: speech.octets, count: speech.length))
  }
}
