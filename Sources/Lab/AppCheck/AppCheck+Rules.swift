import Foundation

/// What each kind of target must have.
extension AppCheck {
  private static let groups = "com.apple.security.application-groups"
  private static let keychain = "keychain-access-groups"
  private static let filtering = "com.apple.developer.usernotifications.filtering"

  // MARK: the app

  mutating func checkApp(_ app: AppTarget, _ targets: [AppTarget]) {
    switch app.info.strings("UIBackgroundModes") {
    case .there(let modes):
      if !modes.contains("voip") {
        add(
          app.info,
          "UIBackgroundModes lacks `voip`: without it iOS accepts a report and then resets the provider (R21); add the string")
      }
      if !modes.contains("audio") {
        add(app.info, "UIBackgroundModes lacks `audio`: a call falls silent when the phone is locked; add the string")
      }
    case .missing:
      add(app.info, "UIBackgroundModes is missing: no push reaches an app without it (R21); add an array with `voip` and `audio`")
    case .wrong(let text): add(app.info, text + ": `voip` and `audio`")
    }
    checkText(app.info, key: "NSMicrophoneUsageDescription", because: "iOS ends an app that asks for the microphone without it")
    switch app.info.strings("NSUserActivityTypes") {
    case .there(let types) where types.contains("INStartCallIntent"): break
    case .there, .missing:
      add(
        app.info, "NSUserActivityTypes lacks `INStartCallIntent`: a tap in Recents opens the app without a call; add the string"
      )
    case .wrong(let text): add(app.info, text + ": `INStartCallIntent`")
    }
    checkPushes(app)
    if targets.contains(where: { $0.kind == .intents }) {
      checkText(app.info, key: "NSSiriUsageDescription", because: "Siri may not hand calls to the app without it")
      checkFlag(app, key: "com.apple.developer.siri", because: "the intents extension needs the capability Siri")
    }
  }

  private mutating func checkText(_ info: PropertyList, key: String, because why: String) {
    switch info.string(key) {
    case .there(let text):
      if text.allSatisfy(\.isWhitespace) { add(info, "\(key) is empty: write for the user what it is for") }
    case .missing: add(info, "\(key) is missing: \(why); add a sentence for the user")
    case .wrong(let text): add(info, text)
    }
  }

  private mutating func checkPushes(_ app: AppTarget) {
    guard !app.entitlements.isEmpty else {
      return addNoEntitlements(app, "`aps-environment` (the capability Push Notifications)")
    }
    for list in app.entitlements {
      switch list.string("aps-environment") {
      case .there("development"), .there("production"): break
      case .there(let text) where text.hasPrefix("$("): break  // set by a build setting
      case .there(let text): add(list, "aps-environment is \(text), and must be `development` or `production`")
      case .missing:
        add(list, "aps-environment is missing: the app gets no push token; add the capability Push Notifications (`development`)")
      case .wrong(let text): add(list, text + ": `development` or `production`")
      }
    }
  }

  private mutating func addNoEntitlements(_ target: AppTarget, _ what: String) {
    let where_ =
      target.executable == nil
      ? "no .entitlements file is beside it" : "its signature has no entitlements (built for the simulator, or not signed)"
    add(target.info, "\(where_): \(what) is missing")
  }

  // MARK: extensions

  mutating func checkExtension(_ target: AppTarget, of app: AppTarget) {
    switch target.kind {
    case .app, .other: return
    case .callDirectory:
      checkShared(
        target, with: app, keys: [Self.groups], because: "the app writes the directory there, and the extension reads it")
    case .intents: checkIntents(target)
    case .notificationService:
      checkFiltering(target)
      checkShared(
        target, with: app, keys: [Self.keychain, Self.groups], because: "the extension opens the caller with the app's key")
    }
    checkPrincipal(target)
  }

  private mutating func checkPrincipal(_ target: AppTarget) {
    guard case .there(let values) = target.info.dictionary("NSExtension") else { return }
    if values["NSExtensionMainStoryboard"] != nil { return }
    switch values["NSExtensionPrincipalClass"] {
    case let name as String where !name.isEmpty: break
    case nil: add(target.info, "NSExtension has no NSExtensionPrincipalClass: add `$(PRODUCT_MODULE_NAME).` and the class's name")
    case let value?:
      add(target.info, "NSExtensionPrincipalClass is \(PropertyList.kind(value)), and must be the class's name, a string")
    }
  }

  private mutating func checkIntents(_ target: AppTarget) {
    guard case .there(let values) = target.info.dictionary("NSExtension") else { return }
    let attributes = values["NSExtensionAttributes"] as? [String: Any]
    guard let supported = attributes?["IntentsSupported"] as? [String], supported.contains("INStartCallIntent") else {
      return add(
        target.info, "NSExtensionAttributes, IntentsSupported lacks `INStartCallIntent`: Siri hands no call to it; add the string"
      )
    }
  }

  /// Both must name one group: of the first key that both have.
  private mutating func checkShared(_ target: AppTarget, with app: AppTarget, keys: [String], because why: String) {
    for list in target.entitlements + app.entitlements {
      for key in keys { if case .wrong(let text) = list.strings(key) { return add(list, text) } }
    }
    if keys.contains(where: { !target.groups($0).isDisjoint(with: app.groups($0)) }) { return }
    let names = keys.map { "`\($0)`" }.joined(separator: " or ")
    let (mine, theirs) = (keys.flatMap { target.groups($0) }, keys.flatMap { app.groups($0) })
    if mine.isEmpty {
      let text = "\(names) is missing: \(why); add a group, the same as the app's"
      if let list = target.entitlements.first { add(list, text) } else { addNoEntitlements(target, names) }
    } else if theirs.isEmpty {
      let text = "\(names) is missing: \(why); add the extension's group \(mine[0])"
      if let list = app.entitlements.first { add(list, text) } else { addNoEntitlements(app, names) }
    } else if let list = target.entitlements.first {
      add(list, "\(names) has \(mine[0]), and the app has \(theirs[0]): \(why); name the same group in both")
    }
  }

  /// R15: error 2 without it. Who does not make pushes of notifications needs it not.
  private mutating func checkFiltering(_ target: AppTarget) {
    guard target.mentions("reportNewIncomingVoIPPushPayload") else { return }
    checkFlag(
      target, key: Self.filtering,
      because: "reportNewIncomingVoIPPushPayload is refused with error 2 (R15); ask Apple for the entitlement")
  }

  private mutating func checkFlag(_ target: AppTarget, key: String, because why: String) {
    guard !target.entitlements.isEmpty else { return addNoEntitlements(target, "`\(key)`") }
    for list in target.entitlements {
      switch list.bool(key) {
      case .there(true): break
      case .there(false), .missing: add(list, "\(key) is missing: \(why); add it with <true/>")
      case .wrong(let text): add(list, text)
      }
    }
  }
}
