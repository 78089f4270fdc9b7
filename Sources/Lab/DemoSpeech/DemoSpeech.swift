/// Two spoken sentences, G.711 µ-law at 8 kHz, for the demo call, `trunk` and `phone` without a WAV file, and tests.
/// Made with eSpeak NG from texts of this project; about 8 s each.
public enum DemoSpeech {
  /// What the telephone side says.
  public static let telephone: [UInt8] = PackageResources.telephone_ulaw
  /// What the app answers.
  public static let app: [UInt8] = PackageResources.app_ulaw
}
