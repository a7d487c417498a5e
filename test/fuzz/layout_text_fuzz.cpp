// ParseLayout must accept only layouts within the bounds. It must read each accepted layout back
// from the text that FormatLayout writes. An error's position must be within the text.

#include "core/identifier/layout_text.h"
#include "fuzz.h"

namespace randflake {
namespace {

void CheckAccepted(const Layout& layout) {
    Check(layout.bits() <= kMaxLayoutBits && layout.timestamp_bits >= 1 &&
          layout.sequence_bits >= 1);
    Check(layout.node_bits <= kMaxFieldBits && layout.sequence_bits <= kMaxFieldBits);
    Check(layout.unit >= 1 && kSecondMs % layout.unit == 0 && layout.epoch % layout.unit == 0 &&
          layout.epoch >= 0);
    Check(layout.TickStart(layout.max_timestamp() + 1).count <= kMaxLayoutEndMs);

    char text[kMaxLayoutText];
    FormatLayout(layout, text);
    const LayoutResult again = ParseLayout(text, std::strlen(text));
    Check(again.error == LayoutError::kNone && again.layout == layout);

    const uint64_t last = (uint64_t{1} << layout.bits()) - 1;
    for (uint64_t id = last; id != 0; id >>= 1) {
        uint64_t raw = 0;
        Check(layout.Pack(layout.FieldsOfId(id), &raw) && layout.ToId(raw) == id);
    }
}

}  // namespace

void Fuzz(const uint8_t* data, size_t size) {
    const LayoutResult result = ParseLayout(reinterpret_cast<const char*>(data), size);
    if (result.error == LayoutError::kNone)
        CheckAccepted(result.layout);
    else
        Check(result.position <= size && result.length <= size - result.position);
}

}  // namespace randflake
