import SamplePhone
import SwiftUI

struct RecentsView: View {
  let model: SampleModel

  var body: some View {
    List {
      ForEach(model.recents) { recent in
        HStack {
          Text(recent.isMissed ? "\(recent.title) (missed)" : recent.title)
          Button("Call") { model.call(recent.number) }
        }
      }
    }
  }
}
