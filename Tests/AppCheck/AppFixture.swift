import Foundation
import Testing

/// An app's folder, or its bundle, in a temporary folder.
final class AppFixture {
  let root: URL

  init() throws {
    root = FileManager.default.temporaryDirectory.appendingPathComponent("app-check-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
  }
  deinit { try? FileManager.default.removeItem(at: root) }

  func write(_ path: String, _ text: String) throws { try write(path, Data(text.utf8)) }
  func write(_ path: String, _ data: Data) throws {
    let file = root.appendingPathComponent(path)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try data.write(to: file)
  }
  /// Of a file: other words in place of these, which must be there.
  func replace(_ old: String, _ new: String, in path: String) throws {
    let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    #expect(text.contains(old), "\(path) has no \(old)")
    try write(path, text.replacingOccurrences(of: old, with: new))
  }
  func remove(_ path: String) throws { try FileManager.default.removeItem(at: root.appendingPathComponent(path)) }

  static func plist(_ body: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict>\(body)</dict></plist>
    """
  }
  private static func array(_ key: String, _ values: String...) -> String {
    "<key>\(key)</key><array>" + values.map { "<string>\($0)</string>" }.joined() + "</array>"
  }
  private static func point(_ point: String, _ type: String, _ more: String = "") -> String {
    "<key>NSExtension</key><dict><key>NSExtensionPointIdentifier</key><string>\(point)</string>"
      + "<key>NSExtensionPrincipalClass</key><string>$(PRODUCT_MODULE_NAME).\(type)</string>\(more)</dict>"
  }

  static let info = plist(
    "<key>CFBundleExecutable</key><string>Phone</string>" + array("UIBackgroundModes", "voip", "audio")
      + "<key>NSMicrophoneUsageDescription</key><string>Your voice is sent to whom you talk to.</string>"
      + "<key>NSSiriUsageDescription</key><string>Siri calls whom you name.</string>"
      + array("NSUserActivityTypes", "INStartCallIntent"))
  static let entitlements = plist(
    "<key>aps-environment</key><string>development</string><key>com.apple.developer.siri</key><true/>"
      + array("com.apple.security.application-groups", "group.example.phone")
      + array("keychain-access-groups", "$(AppIdentifierPrefix)example.phone"))
  static let directory = plist(point("com.apple.callkit.call-directory", "Directory"))
  static let directoryEntitlements = plist(array("com.apple.security.application-groups", "group.example.phone"))
  static let intents = plist(
    point(
      "com.apple.intents-service", "IntentHandler",
      "<key>NSExtensionAttributes</key><dict>" + array("IntentsSupported", "INStartCallIntent") + "</dict>"))
  static let service = plist(point("com.apple.usernotifications.service", "NotificationService"))
  static let serviceEntitlements = plist(
    "<key>com.apple.developer.usernotifications.filtering</key><true/>"
      + array("keychain-access-groups", "$(AppIdentifierPrefix)example.phone"))

  /// Sources with everything an app can have.
  static func good() throws -> AppFixture {
    let fixture = try AppFixture()
    try fixture.write("App/Info.plist", info)
    try fixture.write("App/Phone.entitlements", entitlements)
    try fixture.write("App/PhoneApp.swift", "import TrunklineCallKit\n")
    try fixture.write("Directory/Info.plist", directory)
    try fixture.write("Directory/Directory.entitlements", directoryEntitlements)
    try fixture.write("Intents/Info.plist", intents)
    try fixture.write("Service/Info.plist", service)
    try fixture.write("Service/Service.entitlements", serviceEntitlements)
    try fixture.write("Service/NotificationService.swift", "CXProvider.reportNewIncomingVoIPPushPayload(payload)\n")
    return fixture
  }
}
