import AppSessions
import Foundation
import Testing

@testable import Configuration
@testable import trunkline

/// The parts of the configuration that sessions get.
@Suite struct WelcomeSettingsTests {
  @Test func `the public half of push.webpush.key_file is what welcome has, and nothing without web push`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("welcome-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data("0123456789abcdef0123456789abcdef\n".utf8).write(to: folder.appendingPathComponent("jwt.key"))
    try Data(Self.key.utf8).write(to: folder.appendingPathComponent("vapid.pem"))
    let plain = try ConfigurationFile.parse(Settings.example, file: "example", directory: folder.path)
    #expect(try plain.sessions(nil).webPushKey == nil)
    let push = """

      push: { gateway: "wss://phone.example/v1/connect", webpush: { key_file: vapid.pem, subject: "mailto:a@b.example" } }

      """
    let settings = try ConfigurationFile.parse(Settings.example + push, file: "example", directory: folder.path)
    #expect(try settings.sessions(nil).webPushKey == Self.point)
  }

  /// `openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt`, and its point by `openssl ec -pubout`.
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnaL0+E38kBEZZuIe
    nDMJsSxF2yyPYDhhaFtiuMrtrIahRANCAAQBk4BZvnw/OXYxkOGJfz6lTYrfr1iI
    IfXIPvPZ2ZHm626Ja287P//SFSy+wZU+2pRpMeWexpbEcaQHndwTJ0vV
    -----END PRIVATE KEY-----
    """
  private static let point = "BAGTgFm-fD85djGQ4Yl_PqVNit-vWIgh9cg-89nZkebrbolrbzs__9IVLL7BlT7alGkx5Z7GlsRxpAed3BMnS9U"
}
