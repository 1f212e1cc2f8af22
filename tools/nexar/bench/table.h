// The table as it grows: a line for each row when it is known, and on a terminal a bar under it that shows how far the whole is.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/row.h"

namespace nexar::bench {

// Everything is written in whole lines, because that is how a launcher passes on what ranks write; the bar is a line that the next one
// replaces.
class Table {
 public:
  // `rows` are those that are to come.
  Table(bool shown, bool has_bar, std::size_t rows) : shown_(shown), has_bar_(shown && has_bar), expected_(rows) { write(""); }

  void add(Row row);
  const std::vector<Row>& rows() const { return rows_; }

 private:
  void write(const std::string& lines);

  bool shown_;
  bool has_bar_;
  std::size_t expected_;
  bool bar_is_there_ = false;
  std::vector<Row> rows_;
};

}  // namespace nexar::bench
