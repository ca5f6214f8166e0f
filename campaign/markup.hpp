#pragma once
// Text inside HTML and XML.
#include <string>

namespace assay::campaign {

/// &, <, > and quotes as entities, fit for text and for attribute values; control characters, which XML cannot hold, as '?'.
std::string escape_markup(const std::string& text);

}  // namespace assay::campaign
