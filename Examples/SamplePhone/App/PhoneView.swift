import SamplePhone
import SwiftUI

struct PhoneView: View {
  let model: SampleModel
  let callerID: CallerID

  var body: some View {
    TabView {
      DialerView(model: model).tabItem { Label("Phone", systemImage: "phone") }
      RecentsView(model: model).tabItem { Label("Recents", systemImage: "clock") }
      SettingsView(model: model, callerID: callerID).tabItem { Label("Settings", systemImage: "gear") }
    }
  }
}

/// The dialler, and the calls that there are above it. What rings is shown by the system too.
struct DialerView: View {
  @Bindable var model: SampleModel

  var body: some View {
    List {
      ForEach(model.calls) { call in CallView(model: model, call: call) }
      Section(model.state.description) {
        TextField("Number", text: $model.number)
        Button("Call") { model.dial() }
      }
      if let notice = model.notice {
        Section("Notice") {
          Text(notice)
          Button("OK") { model.notice = nil }
        }
      }
    }
  }
}
