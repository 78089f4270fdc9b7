import Foundation
import SamplePhone
import SwiftUI
import TrunklineCallKit
import UIKit

@main struct SamplePhoneApp: App {
  @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

  var body: some Scene {
    WindowGroup {
      PhoneView(model: delegate.model, callerID: delegate.callerID)
        .onContinueUserActivity(Phone.callActivity) { delegate.model.call($0) }  // Recents, Contacts, Siri
    }
  }
}

/// Has the phone: a VoIP push starts the process without a scene, and the delegate is made in every launch.
final class AppDelegate: NSObject, UIApplicationDelegate {
  let model: SampleModel
  let callerID = CallerID()

  override init() {
    let phone = Phone(Backend.gateway, sealsCallers: true) { try await Backend.phoneToken() }
    model = SampleModel(folder: Backend.folder, phone: phone)
    super.init()
  }

  /// UIKit's way of the same: an app without SwiftUI, or with scenes of its own (then it is `scene(_:continue:)`).
  func application(
    _ application: UIApplication, continue userActivity: NSUserActivity,
    restorationHandler: @escaping ([any UIUserActivityRestoring]?) -> Void
  ) -> Bool { model.call(userActivity) }
}
