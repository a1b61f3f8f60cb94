# Makes one page of page.html, page.css and SCRIPTS, in FOLDER: cmake -DFOLDER= -DSCRIPTS= -DOUTPUT= -P make.cmake
# A browser runs only the one script and style that were here, by their hashes: what is in the data cannot add any.

# The base64 of a SHA-256 (32 bytes), as Content-Security-Policy wants it.
function(hash_of result text)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  string(APPEND hex 00) # 33 bytes: eleven threes
  foreach(at RANGE 0 60 6)
    string(SUBSTRING ${hex} ${at} 6 three)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endforeach()
  string(SUBSTRING ${base64} 0 43 base64)
  set(${result} "sha256-${base64}=" PARENT_SCOPE)
endfunction()

set(script "\"use strict\";\n")
foreach(file IN LISTS SCRIPTS)
  file(READ ${file} text)
  string(APPEND script "${text}")
endforeach()
file(READ ${FOLDER}/page.css style)
if(script MATCHES "</script|<!--" OR style MATCHES "</style")
  message(FATAL_ERROR "what is in the page's script or style would end it")
endif()
hash_of(script_hash "${script}")
hash_of(style_hash "${style}")

file(READ ${FOLDER}/page.html page)
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${OUTPUT} "${page}")
