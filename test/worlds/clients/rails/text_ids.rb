class Invoice < ApplicationRecord
  def serializable_hash(*) = super.merge('id' => id.to_s)
end
